// Which cores each rank gets. Called when a launch is planned.
#pragma once

#include <optional>
#include <vector>

namespace peal::launch {

/// A core's hardware threads, by the numbers that the kernel gives them.
struct Core {
  std::vector<int> cpus;
  friend bool operator==(const Core&, const Core&) = default;
};

/// The cores that this process may use (the affinity of all its threads together, and with it its
/// cpuset), in the machine's order: neighbours in the list share caches and memory. Where the
/// system forbids to ask for the affinity, as many as there are CPUs online, without their hardware
/// threads: ranks are not bound to them. Throws Error(resource). Cost: hwloc looks at the machine,
/// some 10 ms.
std::vector<Core> usable_cores();

/// What one rank gets.
struct CoreShare {
  std::vector<int> cpus;  // to bind to; empty: not bound
  int threads = 1;        // for OMP_NUM_THREADS
  friend bool operator==(const CoreShare&, const CoreShare&) = default;
};

/// Rank r of n gets cores [r C / n, (r + 1) C / n) of C, and every rank C / n threads, rounded
/// down: ranks that wait for each other should be equally fast. With more ranks than cores the same
/// is done with hardware threads, and with more ranks than those nobody is bound. Where a quota
/// (base/cpus.h) gives less time than there are cores, nobody is bound, since others use the same
/// cores, and every rank gets quota / n threads, rounded down; always 1 at least.
std::vector<CoreShare> divide_cores(const std::vector<Core>& cores,
                                    int ranks,
                                    std::optional<double> quota = {});

}  // namespace peal::launch
