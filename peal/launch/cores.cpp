#include "peal/launch/cores.h"

#include <algorithm>
#include <cerrno>
#include <memory>

#include <hwloc.h>

#include "peal/base/error.h"
#include "peal/system/cpus.h"

namespace peal::launch {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, DestroyTopology>;

struct FreeBitmap {
  void operator()(hwloc_bitmap_s* bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

Topology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) throw system_error("hwloc_topology_init", errno);
  Topology topology(raw);
  if (hwloc_topology_load(raw) != 0) throw system_error("hwloc_topology_load", errno);
  return topology;
}

/// The hardware threads of `object` that are in `allowed`.
std::vector<int> cpus_of(hwloc_obj_t object, hwloc_const_bitmap_t allowed) {
  std::vector<int> cpus;
  for (int cpu = hwloc_bitmap_first(object->cpuset); cpu >= 0;
       cpu = hwloc_bitmap_next(object->cpuset, cpu)) {
    if (hwloc_bitmap_isset(allowed, static_cast<unsigned>(cpu)) != 0) cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace

std::size_t cpu_count(std::span<const Core> cores) {
  std::size_t count = 0;
  for (const Core& core : cores) count += core.cpus.size();
  return count;
}

std::vector<Core> usable_cores() {
  // If sched_getaffinity is forbidden, hwloc would retry for ever.
  if (!can_query_affinity()) return std::vector<Core>(static_cast<std::size_t>(cpus_online()));
  const Topology topology = load_topology();
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    hwloc_bitmap_copy(allowed.get(), hwloc_topology_get_allowed_cpuset(topology.get()));
  }
  // Some virtual machines report hardware threads without cores.
  const bool has_cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE) > 0;
  const hwloc_obj_type_t type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<Core> cores;
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology.get(), type, core)) != nullptr;) {
    std::vector<int> cpus = cpus_of(core, allowed.get());
    if (!cpus.empty()) cores.push_back(Core{std::move(cpus)});
  }
  return cores;
}

std::vector<CoreShare> divide_cores(const std::vector<Core>& cores,
                                    int ranks,
                                    std::optional<double> quota) {
  const auto n = static_cast<std::size_t>(ranks);
  if (quota && *quota < static_cast<double>(cores.size())) {
    const CoreShare share{.cpus = {}, .threads = std::max(1, static_cast<int>(*quota / ranks))};
    return std::vector<CoreShare>(n, share);
  }
  if (n > cores.size()) {
    std::vector<Core> threads;
    for (const Core& core : cores) {
      for (const int cpu : core.cpus) threads.push_back(Core{{cpu}});
    }
    if (n > threads.size()) return std::vector<CoreShare>(n);
    return divide_cores(threads, ranks);
  }
  std::vector<CoreShare> shares(n);
  for (std::size_t r = 0; r < n; ++r) {
    shares[r].threads = static_cast<int>(cores.size() / n);
    for (std::size_t i = r * cores.size() / n; i < (r + 1) * cores.size() / n; ++i) {
      shares[r].cpus.insert(shares[r].cpus.end(), cores[i].cpus.begin(), cores[i].cpus.end());
    }
  }
  return shares;
}

}  // namespace peal::launch
