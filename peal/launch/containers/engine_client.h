// Runs commands of podman or docker, and finds the engine and its images. Called before ranks
// start, and by container_rank.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/base/interrupt.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::containers {

/// The running program. A rank in a container is a process of the program peal on its host, which
/// is the program of the guard there.
inline constexpr const char* kOwnProgram = "/proc/self/exe";

/// The variable with the name or path of the engine, if the user has named none.
inline constexpr const char* kEngineVariable = "PEAL_CONTAINER_ENGINE";

enum class EngineKind : unsigned char { kPodman, kDocker };

/// By the file name of the program.
EngineKind kind_of(std::string_view engine);

/// How a command of an engine has ended.
struct EngineAnswer {
  int exit_code = 0;  // 128 + n if signal n has ended it
  std::string out;
  std::string errors;
};

/// Waits until the command has ended. `arguments`: without the name of the program. Errors:
/// resource, if the program cannot start. Throws Interrupted, after it has killed the command.
EngineAnswer run_engine(const std::string& engine,
                        std::vector<std::string> arguments,
                        const Variables& environment,
                        const Interrupt& interrupt = {});

/// An engine that can run the image on this machine.
struct FoundEngine {
  std::string engine{};   // the path; empty: see `problem`
  std::string problem{};  // for the user; names all images that are missing
  std::string notice{};   // what the user should know: an image was pulled
};

/// Finds the engine: `name`, or podman, else docker, if it is empty. Then checks that the engine
/// has each image. If an image is missing, checks that the engine works (docker needs its daemon),
/// and pulls the image, which may take minutes. Throws Interrupted, as run_engine.
FoundEngine find_engine(const std::string& name,
                        const std::vector<std::string>& images,
                        const Variables& environment,
                        const Interrupt& interrupt = {});

}  // namespace peal::launch::containers
