#include "peal/rendezvous/slurm_step.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/rendezvous/nodelist.h"
#include "peal/rendezvous/number_variable.h"

namespace peal::rendezvous {

bool is_slurm_script(const Environment& environment) {
  return environment("ENVIRONMENT") == "BATCH" && !environment("SLURM_STEP_ID");
}

std::optional<int> tasks_of_step(const Environment& environment) {
  if (!environment("SLURM_STEP_ID") || !environment("SLURM_PROCID")) return std::nullopt;
  auto tasks = number_variable(environment, "SLURM_STEP_NUM_TASKS");
  if (!tasks) tasks = number_variable(environment, "SLURM_NTASKS");
  return tasks ? std::optional(tasks->value) : std::nullopt;
}

std::optional<std::string> first_node_of_step(const Environment& environment) {
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"}) {
    if (const auto list = environment(name)) return first_host(*list);
  }
  return std::nullopt;
}

std::optional<std::uint16_t> port_of_step(const Environment& environment) {
  const auto job = try_parse_number<int>(environment("SLURM_JOB_ID").value_or(""));
  if (!job || *job < 0) return std::nullopt;
  const int step = try_parse_number<int>(environment("SLURM_STEP_ID").value_or("0")).value_or(0);
  const std::int64_t mixed = std::int64_t{*job} * 31 + step;
  return static_cast<std::uint16_t>(20000 + mixed % 10000);
}

void check_is_no_singleton(const Environment& environment,
                           int mpi_size,
                           const std::string& origin) {
  const int tasks = tasks_of_step(environment).value_or(1);
  if (mpi_size != 1 || tasks == 1) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} says that this process is alone, but srun has started {} tasks "
                          "(SLURM_STEP_NUM_TASKS or SLURM_NTASKS), and each would work alone: "
                          "start the tasks by srun only, or by one mpirun outside of srun",
                          origin,
                          tasks));
}

}  // namespace peal::rendezvous
