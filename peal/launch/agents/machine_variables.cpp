#include "peal/launch/agents/machine_variables.h"

#include <algorithm>
#include <array>
#include <span>

namespace peal::launch::agents {
namespace {

constexpr std::array<std::string_view, 18> kNames = {
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "MAIL",
    "HOST",
    "HOSTNAME",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "TMP",
    "TEMP",
    "DISPLAY",
    "XAUTHORITY",
    "TERM",
    "SHLVL",
    "LS_COLORS",
    "WINDOWID",
};
constexpr std::array<std::string_view, 4> kBeginnings = {"SSH_", "XDG_", "DBUS_", "SLURM"};

bool begins_with_any(std::string_view name, std::span<const std::string_view> beginnings) {
  return std::ranges::any_of(
      beginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

constexpr std::array<std::string_view, 10> kOfATask = {"SLURM_STEP",
                                                       "SLURM_PROCID",
                                                       "SLURM_LOCALID",
                                                       "SLURM_NTASKS",
                                                       "SLURM_NPROCS",
                                                       "SLURM_TASKS_PER_NODE",
                                                       "SLURM_TASK_PID",
                                                       "SLURM_GTIDS",
                                                       "SLURM_CPU_BIND",
                                                       "SLURM_SRUN"};

}  // namespace

bool belongs_to_machine(std::string_view name) {
  return name == "_" || std::ranges::count(kNames, name) > 0 || begins_with_any(name, kBeginnings);
}

bool describes_agents_task(std::string_view name) { return begins_with_any(name, kOfATask); }

bool limits_each_task(std::string_view name) {
  return name.starts_with("SLURM_") &&
         (name.ends_with("_PER_TASK") || name.starts_with("SLURM_NTASKS_PER_"));
}

Variables part_of(const Variables& variables, Part part) {
  Variables chosen;
  for (const auto& [name, value] : variables) {
    if (belongs_to_machine(name) == (part == Part::kMachine)) chosen.emplace(name, value);
  }
  return chosen;
}

}  // namespace peal::launch::agents
