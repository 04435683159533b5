// How many CPUs some processes may keep busy at once, and what those cache. Asked by the launcher,
// which divides them among ranks, by transports, whose ranks may only poll where each has one to
// itself, and by the engine, which stores past a cache that is too small.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "peal/base/units.h"

namespace peal {

/// How many CPUs there are on which any of these processes may run: their affinities together,
/// which the kernel keeps within their cpusets. (Not those of the machine: a container may have
/// few. Nor those of one process: launchers bind each rank to a part.) A process that cannot be
/// seen from here counts for none. Where the system forbids the question, as a sandbox may, it is
/// the number of all CPUs that are online. Cost: a system call for each process.
int cpus_of(std::span<const std::int64_t> processes);

/// Whether the system says on which CPUs this process may run. Some sandboxes forbid the question.
bool tells_affinity();

/// How many CPUs the machine has online, 1 at least.
int cpus_online();

/// How many CPUs' time this process and its cgroup are given, 1.5 for instance: the least of
/// cpu.max (cgroup v2) and cpu.cfs_quota_us (v1) of the group and those around it. Nothing where it
/// is unlimited or not said. Whoever uses more is stopped for the rest of the period.
/// `root` is where /proc and /sys lie. Cost: some files are read.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// How many of these processes can run at the same moment: cpus_of, as far as the quota goes; 1 at
/// least.
int cpus_at_once(std::span<const std::int64_t> processes);

/// How much the largest cache holds that the first CPU reads data through, as the kernel says; 16
/// MiB where it does not. (sysconf is not asked: on virtual machines it multiplies.) Data that all
/// ranks together touch and that exceeds it will not be found there again, so it is better stored
/// past the cache (kernels::Stores).
/// `root` is where /sys lies. Cost: some files are read; ask once.
Bytes last_cache(const std::filesystem::path& root = "/");

}  // namespace peal
