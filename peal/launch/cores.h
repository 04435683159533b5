// Divides the cores between the ranks. Called when a launch is planned.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace peal::launch {

/// The hardware threads of a core, by the kernel's numbers.
struct Core {
  std::vector<int> cpus;
  friend bool operator==(const Core&, const Core&) = default;
};

/// The hardware threads of all cores; 0 if the cores are not known.
std::size_t cpu_count(std::span<const Core> cores);

/// The cores that this process may use, by the affinity of all its threads and so by its cpuset. In
/// the machine's order: neighbours in the list share caches and memory. If the system forbids to
/// query the affinity, returns one core per online CPU without hardware threads, so that ranks are
/// not bound.
/// Errors: resource.
/// Cost: hwloc examines the machine, some 10 ms.
std::vector<Core> usable_cores();

/// The cores of one rank.
struct CoreShare {
  std::vector<int> cpus;  // to bind to; empty: not bound
  int threads = 1;        // for OMP_NUM_THREADS
  friend bool operator==(const CoreShare&, const CoreShare&) = default;
};

/// Divides C cores between n ranks.
///   Rank r gets cores [r C / n, (r + 1) C / n) and C / n threads, rounded down.
/// All ranks get the same number of threads, since ranks that wait for each other should be equally
/// fast. With more ranks than cores, divides the hardware threads in the same way. With more ranks
/// than hardware threads, binds no rank. If a quota (system/cpus.h) gives less time than there are
/// cores, binds no rank, since others use the same cores; each rank then gets quota / n threads,
/// rounded down. A rank always gets at least one thread.
std::vector<CoreShare> divide_cores(const std::vector<Core>& cores,
                                    int ranks,
                                    std::optional<double> quota = {});

}  // namespace peal::launch
