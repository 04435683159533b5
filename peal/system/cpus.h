// How many CPUs some processes may use at once, and the size of the CPUs' cache. Used by the
// launcher, which divides the CPUs between the ranks; by transports, whose ranks may only poll if
// each has its own CPU; and by the engine, which bypasses a cache that is too small.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "peal/base/units.h"

namespace peal {

/// The number of CPUs on which any of these processes may run: the union of their affinities, which
/// the kernel keeps within their cpusets. (In a container, the number of the machine's CPUs would
/// be too high. The number of one process's CPUs would be too low, because launchers bind each rank
/// to some of the CPUs.) A process that is not visible here does not count. If the system forbids
/// the query, as a sandbox may, returns the number of all online CPUs.
/// Cost: a system call for each process.
int cpus_of(std::span<const std::int64_t> processes);

/// Whether the system reveals the affinity of this process. Some sandboxes forbid the query.
bool can_query_affinity();

/// The number of online CPUs of the machine, at least 1.
int cpus_online();

/// The CPU time that this process's cgroup may use, in CPUs, for example 1.5: the least of cpu.max
/// (cgroup v2) and cpu.cfs_quota_us (v1) of the group and its ancestors. Nothing if it is unlimited
/// or unknown. The kernel stops processes that exceed the quota for the rest of the period. `root`
/// contains /proc and /sys.
/// Cost: some files are read.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

/// How many of these processes can run at the same time: cpus_of, limited by the quota; at least 1.
int cpus_at_once(std::span<const std::int64_t> processes);

/// The size of the largest data cache of the first CPU, by the kernel; 16 MiB if the kernel does
/// not report it. sysconf is not used, because on virtual machines it multiplies the size. If the
/// data of all ranks exceed the cache, they do not stay in it. Then it is better to store them past
/// the cache (kernels::Stores). `root` contains /sys.
/// Cost: some files are read; call it once.
Bytes last_cache(const std::filesystem::path& root = "/");

}  // namespace peal
