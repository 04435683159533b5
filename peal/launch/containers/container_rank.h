// The process of a rank in a container: starts podman or docker, passes on signals, and ends as the
// rank did. Called by the program peal, with the command that in_container makes.
#pragma once

#include <string>
#include <vector>

namespace peal::launch::containers {

/// `peal container-rank ENGINE NAME IMAGE run ...`: runs the engine in the environment of this
/// process, and returns the exit code of the rank. If a signal has ended the rank, the same signal
/// ends this process. If the container did not start, returns 125 to 127, and the text on stderr
/// says so (container_ends.h). Tells the
/// guard by kEndPipeVariable whether the container started, and whether memory ran out.
/// Errors: usage, resource.
int run_container_rank(const std::vector<std::string>& arguments);

/// `peal container-end ENGINE NAME`: waits for the end of stdin, and then kills and removes the
/// container, and the files for it. Does nothing if the container does not exist. The guard starts
/// this before each rank (RankCommand::after_end).
int end_container(const std::vector<std::string>& arguments);

}  // namespace peal::launch::containers
