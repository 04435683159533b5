#include "peal/train/horovod/settings.h"

#include <c10/util/StringUtil.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"

namespace peal::hvd {
namespace {

using Use = Variable::Use;

template <class Number>
Number number(const std::string& text, const char* what, Number least) {
  const auto value = try_parse_number<Number>(text);
  if (value && *value >= least) return *value;
  throw Error(ErrorKind::kUsage, c10::str("it takes ", what, " from ", least, " on"));
}

int whole(const std::string& text, int least = 0) { return number(text, "a whole number", least); }

/// As Horovod reads it: any number but 0 is on.
Switch on_or_off(const std::string& text) {
  if (const auto value = try_parse_number<int>(text)) {
    return *value != 0 ? Switch::kOn : Switch::kOff;
  }
  throw Error(ErrorKind::kUsage, "it takes 0 or 1");
}

Switch inverse(Switch value) { return value == Switch::kOn ? Switch::kOff : Switch::kOn; }

Timeout seconds(const std::string& text) {
  const auto value = number(text, "seconds", 0.0);
  return Timeout(static_cast<std::int64_t>(std::ceil(value * 1000)));
}

constexpr Variable not_needed(std::string_view name, std::string_view meaning) {
  return {name, Use::kNotNeeded, meaning, nullptr};
}

constexpr auto kVariables = std::to_array<Variable>({
    {"HOROVOD_FUSION_THRESHOLD",
     Use::kHonoured,
     "operations are carried out as one up to this many bytes; 0: never",
     [](const std::string& text, Settings& all) {
       all.fusion_threshold = Bytes(number<std::int64_t>(text, "bytes", 0));
     }},
    {"HOROVOD_CACHE_CAPACITY",
     Use::kHonoured,
     "how many operations the ranks remember",
     [](const std::string& text, Settings& all) { all.cache_capacity = whole(text); }},
    {"HOROVOD_DISABLE_GROUP_FUSION",
     Use::kHonoured,
     "1: members of a group are fused only with each other",
     [](const std::string& text, Settings& all) { all.group_fusion = inverse(on_or_off(text)); }},
    {"HOROVOD_DYNAMIC_PROCESS_SETS",
     Use::kHonoured,
     "1: process sets may be added after init",
     [](const std::string& text, Settings& all) { all.dynamic_process_sets = on_or_off(text); }},
    {"HOROVOD_TIMELINE",
     Use::kHonoured,
     "the file of the timeline, or DYNAMIC for start_timeline",
     [](const std::string& text, Settings& all) { all.timeline = text; }},
    {"HOROVOD_TIMELINE_MARK_CYCLES",
     Use::kHonoured,
     "1: the timeline shows each round of the agreement",
     [](const std::string& text, Settings& all) { all.timeline_marks_rounds = on_or_off(text); }},
    {"HOROVOD_STALL_CHECK_TIME_SECONDS",
     Use::kHonoured,
     "after how long a stalled operation is reported",
     [](const std::string& text, Settings& all) { all.stall_warning = seconds(text); }},
    {"HOROVOD_STALL_CHECK_DISABLE",  // after the row above, which it overrides
     Use::kHonoured,
     "1: stalled operations are not reported",
     [](const std::string& text, Settings& all) {
       if (on_or_off(text) == Switch::kOn) all.stall_warning = Timeout(0);
     }},
    {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
     Use::kHonoured,
     "after how long a stalled operation ends the job; 0: never",
     [](const std::string& text, Settings& all) { all.stall_shutdown = seconds(text); }},
    {"HOROVOD_GLOO_TIMEOUT_SECONDS",
     Use::kHonoured,
     "the timeout of meetings, connections and operations",
     [](const std::string& text, Settings& all) { all.timeout = seconds(text); }},
    {"HOROVOD_GLOO_IFACE",
     Use::kHonoured,
     "the network interface, as PEAL_INTERFACE",
     [](const std::string& text, Settings& all) { all.interfaces = text; }},
    {"HOROVOD_ELASTIC",
     Use::kHonoured,
     "1: the job is elastic",
     [](const std::string& text, Settings& all) { all.elastic = on_or_off(text); }},
    {"HOROVOD_AUTOTUNE",
     Use::kHonoured,
     "1: the file HOROVOD_AUTOTUNE_LOG is written; peal has nothing to tune",
     [](const std::string& text, Settings& all) { all.autotune = on_or_off(text); }},
    {"HOROVOD_AUTOTUNE_LOG",
     Use::kHonoured,
     "the file of the tuned values",
     [](const std::string& text, Settings& all) { all.autotune_log = text; }},
    {"HOROVOD_LOG_LEVEL",
     Use::kHonoured,
     "error and fatal: no warnings",
     [](const std::string& text, Settings& all) {
       const bool is_quiet = text == "error" || text == "fatal" || text == "4" || text == "5";
       all.reports = is_quiet ? Switch::kOff : Switch::kOn;
     }},
    {"HOROVOD_RANK",
     Use::kHonoured,
     "the rank of this process",
     [](const std::string& text, Settings& all) { all.rank = whole(text); }},
    {"HOROVOD_SIZE",
     Use::kHonoured,
     "the number of ranks",
     [](const std::string& text, Settings& all) { all.size = whole(text, 1); }},
    {"HOROVOD_LOCAL_RANK",
     Use::kHonoured,
     "the rank among those of this host",
     [](const std::string& text, Settings& all) { all.local_rank = whole(text); }},
    {"HOROVOD_LOCAL_SIZE",
     Use::kHonoured,
     "the number of ranks of this host",
     [](const std::string& text, Settings& all) { all.local_size = whole(text, 1); }},
    {"HOROVOD_CROSS_RANK",
     Use::kHonoured,
     "the rank among those with the same local rank",
     [](const std::string& text, Settings& all) { all.cross_rank = whole(text); }},
    {"HOROVOD_CROSS_SIZE",
     Use::kHonoured,
     "the number of ranks with the same local rank",
     [](const std::string& text, Settings& all) { all.cross_size = whole(text, 1); }},
    {"HOROVOD_HOSTNAME",
     Use::kHonoured,
     "the name of this host",
     [](const std::string& text, Settings& all) { all.host = text; }},
    not_needed("HOROVOD_CYCLE_TIME", "no timer delays an operation"),
    not_needed("HOROVOD_HIERARCHICAL_ALLREDUCE", "peal chooses the algorithm by the machine"),
    not_needed("HOROVOD_HIERARCHICAL_ALLGATHER", "peal chooses the algorithm by the machine"),
    not_needed("HOROVOD_TORUS_ALLREDUCE", "peal chooses the algorithm by the machine"),
    not_needed("HOROVOD_AUTOTUNE_WARMUP_SAMPLES", "peal has nothing to tune"),
    not_needed("HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE", "peal has nothing to tune"),
    not_needed("HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES", "peal has nothing to tune"),
    not_needed("HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE", "peal has nothing to tune"),
    not_needed("HOROVOD_CONTROLLER", "the ranks agree without a controller"),
    not_needed("HOROVOD_CPU_OPERATIONS", "peal's own operations"),
    not_needed("HOROVOD_GLOO_RENDEZVOUS_ADDR", "ranks meet at MASTER_ADDR"),
    not_needed("HOROVOD_GLOO_RENDEZVOUS_PORT", "ranks meet at MASTER_PORT"),
    not_needed("HOROVOD_ELASTIC_TIMEOUT", "the launcher reads it"),
    not_needed("HOROVOD_START_TIMEOUT", "the launcher reads it"),
    not_needed("HOROVOD_LOG_HIDE_TIME", "warnings have no time"),
    not_needed("HOROVOD_THREAD_AFFINITY", "peal run binds the ranks to cores"),
    not_needed("HOROVOD_NUM_NCCL_STREAMS", "there is no NCCL"),
    not_needed("HOROVOD_BATCH_D2D_MEMCOPIES", "there is no NCCL"),
    not_needed("HOROVOD_MPI_THREADS_DISABLE", "there is no MPI"),
    not_needed("HOROVOD_CCL_CACHE", "there is no oneCCL"),
    not_needed("HOROVOD_ADASUM_MPI_CHUNK_SIZE", "there is no MPI"),
    not_needed("HOROVOD_ENABLE_ASYNC_COMPLETION", "there is no NCCL"),
    not_needed("HOROVOD_DISABLE_NVTX_RANGES", "there is no NVTX"),
    not_needed("HOROVOD_ENABLE_XLA_OPS", "there is no XLA"),
    not_needed("HOROVOD_GPU_OPERATIONS", "there is no NCCL"),
    not_needed("HOROVOD_GPU_ALLREDUCE", "there is no NCCL"),
    not_needed("HOROVOD_GPU_ALLGATHER", "there is no NCCL"),
    not_needed("HOROVOD_GPU_BROADCAST", "there is no NCCL"),
    not_needed("HOROVOD_GPU_ALLTOALL", "there is no NCCL"),
    not_needed("HOROVOD_GPU_REDUCESCATTER", "there is no NCCL"),
});

/// Launchers talk to their workers by these.
bool is_of_launcher(std::string_view name) { return name.starts_with("HOROVOD_PEAL_"); }

void check(const Settings& all) {
  if (all.rank.has_value() != all.size.has_value()) {
    throw Error(ErrorKind::kUsage, "set both HOROVOD_RANK and HOROVOD_SIZE, or neither of them");
  }
  if (all.rank && *all.rank >= *all.size) {
    throw Error(ErrorKind::kUsage,
                c10::str("HOROVOD_RANK=",
                         *all.rank,
                         " is not less than HOROVOD_SIZE=",
                         *all.size,
                         ": ranks start at 0"));
  }
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

Settings read_settings(const Environment& environment) {
  Settings all;
  for (const Variable& variable : kVariables) {
    if (variable.use == Use::kNotNeeded) continue;
    const auto text = environment(std::string(variable.name));
    if (!text || text->empty()) continue;
    try {
      variable.parse(*text, all);
    } catch (const Error& error) {
      throw Error(error.kind(), c10::str(variable.name, "=\"", *text, "\": ", error.message()));
    }
  }
  check(all);
  return all;
}

std::vector<std::string> remarks_on(const std::vector<std::string>& names) {
  std::vector<std::string> unused, unknown;
  for (const std::string& name : names) {
    if (!name.starts_with("HOROVOD_") || is_of_launcher(name)) continue;
    const auto* const row = std::ranges::find(kVariables, name, &Variable::name);
    if (row == kVariables.end()) {
      unknown.push_back(name);
    } else if (row->use == Use::kNotNeeded && !row->meaning.starts_with("the launcher")) {
      unused.push_back(name);
    }
  }
  std::vector<std::string> remarks;
  if (!unused.empty()) {
    remarks.push_back("these variables have no effect on peal: " + c10::Join(", ", unused));
  }
  if (!unknown.empty()) {
    remarks.push_back("these variables are unknown, check their names: " +
                      c10::Join(", ", unknown));
  }
  return remarks;
}

std::vector<std::string> environment_names() {
  std::vector<std::string> names;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view entry = *one;
    names.emplace_back(entry.substr(0, entry.find('=')));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace peal::hvd
