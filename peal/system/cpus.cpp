#include "peal/system/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

#include "peal/system/cgroups.h"

namespace peal {
namespace {

using Path = std::filesystem::path;

/// For machines of up to 16384 CPUs; the kernel rejects a set that is smaller than its own.
using CpuSets = std::array<cpu_set_t, 16>;

std::optional<double> quota_v2(const Path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || period <= 0) return std::nullopt;  // "max": unlimited
  return quota / period;
}

std::optional<double> quota_v1(const Path& group) {
  double quota = 0;
  double period = 0;
  std::ifstream(group / "cpu.cfs_quota_us") >> quota;
  std::ifstream(group / "cpu.cfs_period_us") >> period;
  if (quota <= 0 || period <= 0) return std::nullopt;  // -1: unlimited
  return quota / period;
}

/// Parses "32768K", as in sysfs; nothing for any other text.
std::optional<Bytes> size_in(const Path& file) {
  std::int64_t number = 0;
  char unit = 0;
  if (!(std::ifstream(file) >> number >> unit) || number <= 0) return std::nullopt;
  if (unit == 'K') return number * 1_KiB;
  if (unit == 'M') return number * 1_MiB;
  return std::nullopt;
}

}  // namespace

bool can_query_affinity() {
  CpuSets own{};
  return ::sched_getaffinity(0, sizeof own, own.data()) == 0;
}

int cpus_online() { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); }

int cpus_of(std::span<const std::int64_t> processes) {
  CpuSets all{};
  for (const std::int64_t process : processes) {
    CpuSets own{};
    if (::sched_getaffinity(static_cast<pid_t>(process), sizeof own, own.data()) != 0) {
      if (!can_query_affinity()) return cpus_online();
      continue;
    }
    CPU_OR_S(sizeof all, all.data(), all.data(), own.data());
  }
  return CPU_COUNT_S(sizeof all, all.data());
}

std::optional<double> cpu_quota(const Path& root) {
  std::optional<double> least;
  for (const Path& group : cgroups_of("cpu", root)) {
    keep_least(least, quota_v2(group));
    keep_least(least, quota_v1(group));
  }
  return least;
}

int cpus_at_once(std::span<const std::int64_t> processes) {
  int cpus = cpus_of(processes);
  if (const auto quota = cpu_quota()) cpus = std::min(cpus, static_cast<int>(*quota));
  return std::max(cpus, 1);
}

Bytes last_cache(const Path& root) {
  Bytes largest;
  const Path caches = root / "sys/devices/system/cpu/cpu0/cache";
  for (int i = 0;; ++i) {
    const auto size = size_in(caches / ("index" + std::to_string(i)) / "size");
    if (!size) break;
    largest = std::max(largest, *size);
  }
  return largest > 0_B ? largest : 16_MiB;
}

}  // namespace peal
