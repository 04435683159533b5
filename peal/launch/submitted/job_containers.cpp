#include "peal/launch/submitted/job_containers.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace peal::launch::submitted {
namespace {

bool wants_more(const Role& role, std::span<const Core> cores) {
  const std::size_t cpus = cpu_count(cores);
  return role.resources.cpus && cpus > 0 && *role.resources.cpus > static_cast<double>(cpus);
}

}  // namespace

bool has_containers(const Job& job) {
  return !std::ranges::all_of(job.roles, &std::string::empty, &Role::image);
}

bool runs_only_in_containers(const Job& job) {
  return std::ranges::none_of(job.roles, &std::string::empty, &Role::image);
}

containers::Container container_of(const Job& job,
                                   const Role& role,
                                   int attempt,
                                   std::span<const Core> cores) {
  const auto ranks = static_cast<std::size_t>(role.ranks_per_node);
  containers::Container container{.image = role.image,
                                  .entrypoint = role.command.empty()
                                                    ? containers::Entrypoint::kKept
                                                    : containers::Entrypoint::kReplaced,
                                  .directory = job.directory,
                                  .shm = role.resources.shm,
                                  .has_gpus = role.resources.gpus.value_or(0) > 0,
                                  .attempt = attempt,
                                  .labels = job.labels};
  if (role.resources.memory) container.memory = *role.resources.memory / ranks;
  if (role.resources.cpus && !wants_more(role, cores)) {
    container.cpus = *role.resources.cpus / role.ranks_per_node;
  }
  const auto options = job.engine_options.find("container");
  if (options != job.engine_options.end()) container.options = options->second;
  return container;
}

std::string missing_cpus(const Job& job, const std::string& host, std::span<const Core> cores) {
  std::vector<std::string> wants;
  for (const Role& role : job.roles) {
    if (role.image.empty() || !wants_more(role, cores)) continue;
    wants.push_back(
        fmt::format("a node of the role {} asks for {}", role.name, *role.resources.cpus));
  }
  if (wants.empty()) return {};
  return fmt::format("{} has {} CPUs, and {}: their containers have no limit of CPUs",
                     host,
                     cpu_count(cores),
                     fmt::join(wants, ", "));
}

}  // namespace peal::launch::submitted
