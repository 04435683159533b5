// The process of a rank in a container: starts podman or docker, passes on signals, and ends as the
// rank did. Called by the program peal, with the command that in_container makes.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace peal::launch::containers {

/// `peal container-rank ENGINE NAME run ...`: runs the engine in the environment of this process,
/// and returns the exit code of the rank. If a signal has ended the rank, the same signal ends this
/// process. 125 to 127: the container did not start; the text on stderr says so.
/// Errors: usage, resource.
int run_container_rank(const std::vector<std::string>& arguments);

/// Whether these lines of a rank contain the message of run_container_rank that the container did
/// not start. The exit code does not show this, because a program may end with 125, too.
bool tell_of_no_start(std::span<const std::string> lines);

/// `peal container-end ENGINE NAME`: waits for the end of stdin, and then kills and removes the
/// container, and the files for it. Does nothing if the container does not exist. The guard starts
/// this before each rank (RankCommand::after_end).
int end_container(const std::vector<std::string>& arguments);

}  // namespace peal::launch::containers
