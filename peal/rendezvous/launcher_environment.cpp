#include "peal/rendezvous/launcher_environment.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/rendezvous/node_variables.h"
#include "peal/rendezvous/nodelist.h"
#include "peal/rendezvous/slurm_step.h"

namespace peal::rendezvous {
namespace {

/// The names of one launcher's variables. "" if the launcher does not have the variable.
struct Convention {
  Launcher launcher;
  const char* name;
  const char* sign;  // a variable that only this launcher sets
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
};

/// The first convention whose sign is set counts. RANK comes first, since a user may set it by hand
/// under any launcher. Launchers that run inside a Slurm allocation come before Slurm.
constexpr std::array kConventions = {
    Convention{Launcher::kTorchrun,
               "torchrun",
               "TORCHELASTIC_RUN_ID",
               "RANK",
               "WORLD_SIZE",
               "LOCAL_RANK",
               "LOCAL_WORLD_SIZE"},
    Convention{Launcher::kEnvironment,
               "environment",
               "RANK",
               "RANK",
               "WORLD_SIZE",
               "LOCAL_RANK",
               "LOCAL_WORLD_SIZE"},
    Convention{Launcher::kOpenMpi,
               "Open MPI",
               "OMPI_COMM_WORLD_RANK",
               "OMPI_COMM_WORLD_RANK",
               "OMPI_COMM_WORLD_SIZE",
               "OMPI_COMM_WORLD_LOCAL_RANK",
               "OMPI_COMM_WORLD_LOCAL_SIZE"},
    Convention{Launcher::kMpich,
               "MPICH",
               "MPI_LOCALRANKID",
               "PMI_RANK",
               "PMI_SIZE",
               "MPI_LOCALRANKID",
               "MPI_LOCALNRANKS"},
    Convention{Launcher::kSlurm,
               "Slurm",
               "SLURM_PROCID",
               "SLURM_PROCID",
               "SLURM_NTASKS",
               "SLURM_LOCALID",
               ""},
    Convention{Launcher::kMpich, "MPICH", "PMI_RANK", "PMI_RANK", "PMI_SIZE", "", ""},
};

std::optional<Number> argument(std::optional<int> value, std::string_view name) {
  if (!value) return std::nullopt;
  return Number{*value, fmt::format("{}={}", name, *value)};
}

const Convention* find_convention(const Environment& environment) {
  for (const Convention& convention : kConventions) {
    if (!environment(convention.sign)) continue;
    if (convention.launcher == Launcher::kSlurm && is_slurm_script(environment)) continue;
    return &convention;
  }
  return nullptr;
}

std::optional<Number> slurm_local_size(const Environment& environment) {
  const auto node = number_variable(environment, "SLURM_NODEID");
  for (const char* name : {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"}) {
    const auto list = environment(name);
    if (!list || !node) continue;
    if (const auto tasks = tasks_on_node(*list, node->value)) return Number{*tasks, name};
  }
  return number_variable(environment, "SLURM_NTASKS_PER_NODE");
}

/// What a launcher says about this process. Values that it does not give are empty.
struct Said {
  std::optional<Number> rank, world_size, local_rank, local_world_size;
};

bool is_mpi(Launcher launcher) {
  return launcher == Launcher::kOpenMpi || launcher == Launcher::kMpich;
}

Said ask(const Convention* convention, const Environment& environment) {
  if (convention == nullptr) return {{}, number_variable(environment, "WORLD_SIZE"), {}, {}};
  Said said{number_variable(environment, convention->rank),
            number_variable(environment, convention->world_size),
            number_variable(environment, convention->local_rank),
            number_variable(environment, convention->local_world_size)};
  if (convention->launcher == Launcher::kSlurm) {
    if (auto step = number_variable(environment, "SLURM_STEP_NUM_TASKS")) said.world_size = step;
    said.local_world_size = slurm_local_size(environment);
  } else if (is_mpi(convention->launcher) && said.world_size) {
    check_is_no_singleton(environment, said.world_size->value, said.world_size->origin);
  }
  return said;
}

/// A launcher that starts one process on each node says nothing about ranks. So the process is the
/// rank of its node, unless the launcher asks for several ranks on each node.
std::optional<NodeVariables> ask_for_node(const Environment& environment) {
  auto found = any_node_variables(environment);
  const auto each = text_variable(environment, "PET_NPROC_PER_NODE");
  if (!found || found->nodes.value == 1 || !environment("PET_NNODES") || !each || *each == "1") {
    return found;
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("PET_NPROC_PER_NODE={} asks for ranks on each of {} nodes, but this "
                          "program was started without a launcher: start it with peal run, which "
                          "reads the variable",
                          *each,
                          found->nodes.value));
}

/// The number of ranks of each node if they are consecutive, as in peal run and torchrun; else 0.
int ranks_per_node(const Environment& environment, const Identity& identity) {
  const auto nodes = try_parse_number<int>(environment("GROUP_WORLD_SIZE").value_or(""));
  const bool is_even = nodes && *nodes > 1 &&
                       std::int64_t{*nodes} * identity.local_world_size == identity.world_size;
  return is_even ? identity.local_world_size : 0;
}

bool needs_master(Launcher launcher, const Environment& environment) {
  const bool is_by_hand = launcher == Launcher::kNone || launcher == Launcher::kEnvironment;
  return is_by_hand && !text_variable(environment, "MASTER_ADDR");
}

Error missing(std::string_view what, std::string_view known, const Convention* convention) {
  return Error(ErrorKind::kUsage,
               fmt::format("the {} of this process is not known{}: set {}, pass it, or start the "
                           "program with a launcher such as peal run",
                           what,
                           known.empty() ? "" : fmt::format(" ({} is)", known),
                           what == "rank" ? (convention ? convention->rank : "RANK")
                                          : (convention ? convention->world_size : "WORLD_SIZE")));
}

/// The launcher's local numbers count only if its rank and world size are those of the request.
bool takes_local(const Said& said, const Number& rank, const Number& world_size) {
  return said.local_rank && said.local_world_size && said.rank && said.world_size &&
         said.rank->value == rank.value && said.world_size->value == world_size.value;
}

std::string job_of(Launcher launcher, const Environment& environment) {
  const auto joined = [&](std::initializer_list<const char*> names) {
    std::string job;
    for (const char* name : names) {
      if (const auto part = environment(name)) job += (job.empty() ? "" : ".") + *part;
    }
    return job;
  };
  if (const auto job = environment("PEAL_JOB")) return *job;
  switch (launcher) {
    case Launcher::kTorchrun:
      return joined({"TORCHELASTIC_RUN_ID", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT"});
    case Launcher::kSlurm:
      return joined({"SLURM_JOB_ID", "SLURM_STEP_ID"});
    case Launcher::kOpenMpi:
      if (environment("PMIX_NAMESPACE")) return joined({"PMIX_NAMESPACE"});
      return joined({"OMPI_MCA_ess_base_jobid"});
    case Launcher::kNone:
    case Launcher::kEnvironment:
    case Launcher::kMpich:
    case Launcher::kNodes:
      break;
  }
  return "";
}

}  // namespace

LauncherEnvironment read_launcher_environment(const MeetRequest& request,
                                              const Url& url,
                                              const Environment& environment) {
  const Convention* convention = find_convention(environment);
  const Said said = ask(convention, environment);
  LauncherEnvironment launch;
  launch.launcher = convention ? convention->launcher : Launcher::kNone;
  launch.job = job_of(launch.launcher, environment);

  auto rank = argument(request.rank ? request.rank : url.rank, "rank");
  const bool is_argument = rank.has_value();
  if (!rank) rank = said.rank;
  auto world_size =
      argument(request.world_size ? request.world_size : url.world_size, "world_size");
  if (!world_size) world_size = said.world_size;
  std::string source = convention ? convention->name : "";
  const bool is_env = std::holds_alternative<EnvironmentUrl>(url.way);
  const bool needs_rank = !rank && !world_size;
  if (needs_rank || (is_env && !request.store && needs_master(launch.launcher, environment))) {
    if (const auto node = ask_for_node(environment)) {
      launch.master = node->master;
      launch.master_port = node->port.value_or(kDefaultMasterPort);
      if (needs_rank) {
        launch.launcher = Launcher::kNodes;
        launch.ranks_per_node = 1;
        rank = node->node;
        world_size = node->nodes;
        source = node->launcher;
      }
    }
  }
  if (!rank && !world_size && is_env && !environment("MASTER_ADDR") &&
      !environment("MASTER_PORT")) {
    launch.identity.source = "alone";
    launch.local_is_known = true;
    return launch;
  }
  if (!rank) throw missing("rank", world_size ? world_size->origin : "", convention);
  if (!world_size) throw missing("world size", rank->origin, convention);
  check_range(*rank, *world_size, "ranks");

  launch.identity = {rank->value,
                     world_size->value,
                     rank->value,
                     world_size->value,
                     is_argument ? "arguments" : source};
  if (takes_local(said, *rank, *world_size)) {
    check_range(*said.local_rank, *said.local_world_size, "local ranks");
    launch.local_is_known = true;
    launch.identity.local_rank = said.local_rank->value;
    launch.identity.local_world_size = std::min(said.local_world_size->value, world_size->value);
    launch.ranks_per_node = ranks_per_node(environment, launch.identity);
  }
  return launch;
}

Identity identify(const MeetRequest& request, const Environment& environment) {
  return read_launcher_environment(request, parse_url(request.url), environment).identity;
}

}  // namespace peal::rendezvous
