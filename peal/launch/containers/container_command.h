// The command of a rank in a container: a pure function of the rank, its container and the engine.
// The process of such a rank is `peal container-rank` (container_rank.h), which runs the engine.
// Called wherever commands of ranks are planned.
#pragma once

#include <string>

#include "peal/launch/containers/container.h"
#include "peal/launch/rank_command.h"

namespace peal::launch::containers {

/// Where the file with the job's secret is in a container: the value of PEAL_SECRET_FILE.
inline constexpr const char* kSecretPath = "/run/peal-secret";

/// Where the stop flag of the rank (system/stop_flag.h) is in a container.
inline constexpr const char* kStopFlagPath = "/run/peal-stop-flag";

/// From in_container to `peal container-rank`: the lines NAME=VALUE of the file for --env-file.
inline constexpr const char* kFileVariable = "PEAL_CONTAINER_VARIABLES";

/// The commands of the program peal, which users do not call.
inline constexpr const char* kRankWord = "container-rank";
inline constexpr const char* kEndWord = "container-end";

/// The variables of a launcher or a host that a rank in a container inherits: PEAL_*, HOROVOD_*,
/// OMP_* and NCCL_*. The other variables describe the host, not the image: its PATH would hide the
/// programs of the image.
Variables inherited_in_container(const Variables& variables);

/// "peal-JOB-0-3": by the job (PEAL_JOB), the attempt and the rank.
std::string container_name(const RankCommand& rank, const Container& container);

/// The command that starts the rank in the container, and the command for its end (after_end).
/// `rank`: as it should run inside, with the complete environment. `engine`: the path of podman or
/// docker. `outside`: the environment of the engine's command. The values of variables are in the
/// environment of the result, never in its arguments. The job's secret is not a variable of the
/// container, because the engine shows variables: the rank finds the secret in a file.
/// Errors: usage, if a variable that the engine itself reads, such as PATH, has several lines.
RankCommand in_container(const RankCommand& rank,
                         const Container& container,
                         const std::string& engine,
                         const Variables& outside);

}  // namespace peal::launch::containers
