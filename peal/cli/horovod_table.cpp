#include "peal/cli/horovod_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"

namespace peal::cli {
namespace {

constexpr const char* kHosts = "Hosts, as in horovodrun";
constexpr const char* kOutput = "Output, as in horovodrun";
constexpr const char* kOperations = "Operations of Horovod's API";
constexpr const char* kAutotune = "Autotune of Horovod's API";
constexpr const char* kSeeing = "Timeline, stall check and log of Horovod's API";
constexpr const char* kElastic = "Elastic jobs, as in horovodrun";
constexpr const char* kUnused = "Accepted from horovodrun, without effect";

constexpr const char* kNoMpi = "peal starts the ranks without MPI";

constexpr std::array kOptions = {
    HorovodOption{.name = "--hosts",
                  .other_names = "-H,--host",
                  .accepts = Accepts::kText,
                  .value = "HOSTS",
                  .heading = kHosts,
                  .meaning = "The hosts and their slots, as in h1:2,h2:2"},
    HorovodOption{.name = "--hostfile",
                  .accepts = Accepts::kText,
                  .value = "FILE",
                  .heading = kHosts,
                  .meaning = "A file with a host on each line, as in h1 slots=2"},
    HorovodOption{.name = "--ssh-port",
                  .other_names = "-p",
                  .accepts = Accepts::kPositive,
                  .value = "PORT",
                  .heading = kHosts,
                  .meaning = "The port of ssh on the hosts"},
    HorovodOption{.name = "--ssh-identity-file",
                  .other_names = "-i",
                  .accepts = Accepts::kText,
                  .value = "FILE",
                  .heading = kHosts,
                  .meaning = "The private key for ssh"},
    HorovodOption{.name = "--network-interfaces",
                  .other_names = "--network-interface",
                  .accepts = Accepts::kText,
                  .value = "NAMES",
                  .heading = kHosts,
                  .meaning = "The network interfaces to use, as in eth0,eth1",
                  .variable = "HOROVOD_GLOO_IFACE"},
    HorovodOption{.name = "--start-timeout",
                  .accepts = Accepts::kPositive,
                  .value = "SECONDS",
                  .heading = kHosts,
                  .meaning = "How long the ranks may take to meet",
                  .variable = "HOROVOD_START_TIMEOUT"},
    HorovodOption{
        .name = "--gloo", .heading = kHosts, .meaning = "Connect the ranks without MPI, as always"},
    HorovodOption{.name = "--output-filename",
                  .accepts = Accepts::kText,
                  .value = "DIR",
                  .heading = kOutput,
                  .meaning = "Also write each rank's output to DIR/rank.N/stdout and stderr"},
    HorovodOption{.name = "--prefix-timestamp",
                  .other_names = "--prefix-output-with-timestamp",
                  .heading = kOutput,
                  .meaning = "Put the time before each line"},
    HorovodOption{
        .name = "--verbose", .heading = kOutput, .meaning = "Show which ranks are on which host"},
    HorovodOption{.name = "--config-file",
                  .accepts = Accepts::kText,
                  .value = "FILE",
                  .heading = kOutput,
                  .meaning = "Read options from a YAML file, at this place among the options"},
    HorovodOption{.name = "--fusion-threshold-mb",
                  .accepts = Accepts::kMegabytes,
                  .value = "MB",
                  .heading = kOperations,
                  .meaning = "How much is fused into one operation (128); 0: no fusion",
                  .variable = "HOROVOD_FUSION_THRESHOLD",
                  .place = "params.fusion_threshold_mb"},
    HorovodOption{.name = "--cache-capacity",
                  .accepts = Accepts::kWhole,
                  .value = "NAMES",
                  .heading = kOperations,
                  .meaning = "How many names of tensors are cached (1024)",
                  .variable = "HOROVOD_CACHE_CAPACITY",
                  .place = "params.cache_capacity"},
    HorovodOption{.name = "--hierarchical-allreduce",
                  .opposite = "--no-hierarchical-allreduce",
                  .heading = kOperations,
                  .meaning = "Prefer to reduce inside the hosts first",
                  .variable = "HOROVOD_HIERARCHICAL_ALLREDUCE",
                  .place = "params.hierarchical_allreduce"},
    HorovodOption{.name = "--hierarchical-allgather",
                  .opposite = "--no-hierarchical-allgather",
                  .heading = kOperations,
                  .meaning = "Prefer to gather inside the hosts first",
                  .variable = "HOROVOD_HIERARCHICAL_ALLGATHER",
                  .place = "params.hierarchical_allgather"},
    HorovodOption{.name = "--torus-allreduce",
                  .opposite = "--no-torus-allreduce",
                  .heading = kOperations,
                  .meaning = "Prefer two-level reductions in parallel",
                  .variable = "HOROVOD_TORUS_ALLREDUCE",
                  .place = "params.torus_allreduce"},
    HorovodOption{.name = "--gloo-timeout-seconds",
                  .accepts = Accepts::kPositive,
                  .value = "SECONDS",
                  .heading = kOperations,
                  .meaning = "How long an operation may take",
                  .variable = "HOROVOD_GLOO_TIMEOUT_SECONDS",
                  .place = "library_options.gloo_timeout_seconds"},
    HorovodOption{.name = "--thread-affinity",
                  .accepts = Accepts::kText,
                  .value = "CPUS",
                  .heading = kOperations,
                  .meaning = "The CPUs of the threads that run the operations",
                  .variable = "HOROVOD_THREAD_AFFINITY",
                  .place = "library_options.thread_affinity"},
    HorovodOption{.name = "--autotune",
                  .opposite = "--no-autotune",
                  .heading = kAutotune,
                  .meaning = "Tune while the job runs",
                  .variable = "HOROVOD_AUTOTUNE",
                  .place = "autotune.enabled"},
    HorovodOption{.name = "--autotune-log-file",
                  .accepts = Accepts::kText,
                  .value = "FILE",
                  .heading = kAutotune,
                  .meaning = "Where to write the samples, as CSV",
                  .variable = "HOROVOD_AUTOTUNE_LOG",
                  .place = "autotune.log_file"},
    HorovodOption{.name = "--autotune-warmup-samples",
                  .accepts = Accepts::kWhole,
                  .value = "N",
                  .heading = kAutotune,
                  .meaning = "How many samples do not count (3)",
                  .variable = "HOROVOD_AUTOTUNE_WARMUP_SAMPLES",
                  .place = "autotune.warmup_samples"},
    HorovodOption{.name = "--autotune-steps-per-sample",
                  .accepts = Accepts::kWhole,
                  .value = "N",
                  .heading = kAutotune,
                  .meaning = "How many steps are a sample (10)",
                  .variable = "HOROVOD_AUTOTUNE_STEPS_PER_SAMPLE",
                  .place = "autotune.steps_per_sample"},
    HorovodOption{.name = "--autotune-bayes-opt-max-samples",
                  .accepts = Accepts::kWhole,
                  .value = "N",
                  .heading = kAutotune,
                  .meaning = "The most samples (20)",
                  .variable = "HOROVOD_AUTOTUNE_BAYES_OPT_MAX_SAMPLES",
                  .place = "autotune.bayes_opt_max_samples"},
    HorovodOption{.name = "--autotune-gaussian-process-noise",
                  .accepts = Accepts::kFraction,
                  .value = "FRACTION",
                  .heading = kAutotune,
                  .meaning = "The noise of a sample, from 0 to 1 (0.8)",
                  .variable = "HOROVOD_AUTOTUNE_GAUSSIAN_PROCESS_NOISE",
                  .place = "autotune.gaussian_process_noise"},
    HorovodOption{.name = "--timeline-filename",
                  .accepts = Accepts::kText,
                  .value = "FILE",
                  .heading = kSeeing,
                  .meaning = "Write a timeline of all operations, for Chrome's tracing",
                  .variable = "HOROVOD_TIMELINE",
                  .place = "timeline.filename"},
    HorovodOption{.name = "--timeline-mark-cycles",
                  .opposite = "--no-timeline-mark-cycles",
                  .heading = kSeeing,
                  .meaning = "Mark each cycle in the timeline",
                  .variable = "HOROVOD_TIMELINE_MARK_CYCLES",
                  .place = "timeline.mark_cycles"},
    HorovodOption{.name = "--stall-check",
                  .opposite = "--no-stall-check",
                  .heading = kSeeing,
                  .meaning = "Do not report tensors that some ranks do not submit",
                  .shown = Shown::kOpposite,
                  .variable = "HOROVOD_STALL_CHECK_DISABLE",
                  .sense = Sense::kIsOff,
                  .place = "stall_check.enabled"},
    HorovodOption{.name = "--stall-check-warning-time-seconds",
                  .accepts = Accepts::kWhole,
                  .value = "SECONDS",
                  .heading = kSeeing,
                  .meaning = "How long a tensor may wait for other ranks without a report (60)",
                  .variable = "HOROVOD_STALL_CHECK_TIME_SECONDS",
                  .place = "stall_check.warning_time_seconds"},
    HorovodOption{.name = "--stall-check-shutdown-time-seconds",
                  .accepts = Accepts::kWhole,
                  .value = "SECONDS",
                  .heading = kSeeing,
                  .meaning = "How long a tensor may wait before all ranks fail (0: for ever)",
                  .variable = "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS",
                  .place = "stall_check.shutdown_time_seconds"},
    HorovodOption{.name = "--log-level",
                  .accepts = Accepts::kLevel,
                  .value = "LEVEL",
                  .heading = kSeeing,
                  .meaning = "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL (WARNING)",
                  .variable = "HOROVOD_LOG_LEVEL",
                  .place = "logging.level"},
    HorovodOption{.name = "--log-with-timestamp",
                  .other_names = "--no-log-hide-timestamp",
                  .opposite = "--log-without-timestamp,--log-hide-timestamp",
                  .heading = kSeeing,
                  .meaning = "Write no time into the log",
                  .shown = Shown::kOpposite,
                  .variable = "HOROVOD_LOG_HIDE_TIME",
                  .sense = Sense::kIsOff,
                  .place = "logging.with_timestamp"},
    HorovodOption{.name = "--host-discovery-script",
                  .accepts = Accepts::kText,
                  .value = "FILE",
                  .heading = kElastic,
                  .meaning = "A program that prints the hosts, one on each line"},
    HorovodOption{.name = "--min-np",
                  .other_names = "--min-num-proc",
                  .accepts = Accepts::kPositive,
                  .value = "RANKS",
                  .heading = kElastic,
                  .meaning = "With fewer ranks the job waits (-n)"},
    HorovodOption{.name = "--max-np",
                  .other_names = "--max-num-proc",
                  .accepts = Accepts::kPositive,
                  .value = "RANKS",
                  .heading = kElastic,
                  .meaning = "The most ranks (all slots)"},
    HorovodOption{.name = "--slots-per-host",
                  .other_names = "--slots",
                  .accepts = Accepts::kPositive,
                  .value = "N",
                  .heading = kElastic,
                  .meaning = "The slots of a host for which the script prints no number (1)"},
    HorovodOption{.name = "--elastic-timeout",
                  .accepts = Accepts::kPositive,
                  .value = "SECONDS",
                  .heading = kElastic,
                  .meaning = "How long the job waits for enough ranks (600)"},
    HorovodOption{.name = "--reset-limit",
                  .accepts = Accepts::kWhole,
                  .value = "N",
                  .heading = kElastic,
                  .meaning = "How many times the ranks may change (without limit)"},
    HorovodOption{.name = "--blacklist-cooldown-range",
                  .accepts = Accepts::kPositive,
                  .value = "MIN MAX",
                  .values = 2,
                  .heading = kElastic,
                  .meaning = "For how many seconds a host gets no ranks after a failure"},
    HorovodOption{.name = "--cycle-time-ms",
                  .accepts = Accepts::kNumber,
                  .value = "MS",
                  .heading = kUnused,
                  .meaning = "No operation waits for a cycle",
                  .variable = "HOROVOD_CYCLE_TIME",
                  .place = "params.cycle_time_ms",
                  .no_effect = "on peal no operation waits for a cycle"},
    HorovodOption{.name = "--disable-cache",
                  .heading = kUnused,
                  .meaning = "The hosts are checked at each start",
                  .no_effect = "peal checks the hosts at each start"},
    HorovodOption{.name = "--tcp",
                  .heading = kUnused,
                  .meaning = "peal uses shared memory and TCP",
                  .no_effect = "peal always uses shared memory and TCP"},
    HorovodOption{.name = "--mpi-args",
                  .accepts = Accepts::kText,
                  .value = "TEXT",
                  .heading = kUnused,
                  .meaning = "peal needs no MPI",
                  .no_effect = kNoMpi},
    HorovodOption{.name = "--mpi-threads-disable",
                  .opposite = "--no-mpi-threads-disable",
                  .heading = kUnused,
                  .meaning = "peal needs no MPI",
                  .variable = "HOROVOD_MPI_THREADS_DISABLE",
                  .place = "library_options.mpi_threads_disable",
                  .no_effect = kNoMpi},
    HorovodOption{.name = "--binding-args",
                  .accepts = Accepts::kText,
                  .value = "TEXT",
                  .heading = kUnused,
                  .meaning = "See --bind",
                  .no_effect = "peal binds each rank to its cores (--bind)"},
    HorovodOption{.name = "--num-nccl-streams",
                  .accepts = Accepts::kWhole,
                  .value = "N",
                  .heading = kUnused,
                  .meaning = "peal does not use NCCL",
                  .variable = "HOROVOD_NUM_NCCL_STREAMS",
                  .place = "library_options.num_nccl_streams",
                  .no_effect = "peal does not use NCCL"},
    HorovodOption{.name = "--ccl-bgt-affinity",
                  .accepts = Accepts::kWhole,
                  .value = "CPU",
                  .shown = Shown::kNothing,
                  .variable = "HOROVOD_CCL_BGT_AFFINITY",
                  .place = "library_options.ccl_bgt_affinity",
                  .no_effect = "peal does not use oneCCL"},
    HorovodOption{.name = "--mpi", .shown = Shown::kNothing},
    HorovodOption{.name = "--jsrun", .shown = Shown::kNothing},
};

std::string_view right_values(Accepts accepts) {
  switch (accepts) {
    case Accepts::kSwitch:
      return "true or false";
    case Accepts::kWhole:
    case Accepts::kMegabytes:
      return "a whole number, 0 or more";
    case Accepts::kPositive:
      return "a whole number, 1 or more";
    case Accepts::kNumber:
      return "a number, 0 or more";
    case Accepts::kFraction:
      return "a number from 0 to 1";
    case Accepts::kLevel:
      return "TRACE, DEBUG, INFO, WARNING, ERROR or FATAL";
    case Accepts::kText:
      break;
  }
  return "a text that is not empty";
}

bool is_whole(std::string_view text, std::int64_t smallest) {
  // The largest number of megabytes and seconds fits all variables of this kind.
  constexpr std::int64_t kLargest = 1'000'000'000;
  const auto number = try_parse_number<std::int64_t>(text);
  return number && *number >= smallest && *number <= kLargest;
}

bool is_number(std::string_view text, double largest) {
  const auto number = try_parse_number<double>(text);
  return number && *number >= 0 && *number <= largest;  // false for NaN
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(
      small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

bool is_level(std::string_view text) {
  constexpr std::array kLevels = {"trace", "debug", "info", "warning", "error", "fatal"};
  return std::ranges::find(kLevels, in_small_letters(text)) != kLevels.end();
}

bool is_switch(std::string_view text) {
  constexpr std::array kValues = {"true", "false", "yes", "no", "on", "off", "1", "0"};
  return std::ranges::find(kValues, in_small_letters(text)) != kValues.end();
}

bool is_accepted(Accepts accepts, std::string_view text) {
  switch (accepts) {
    case Accepts::kSwitch:
      return is_switch(text);
    case Accepts::kWhole:
    case Accepts::kMegabytes:
      return is_whole(text, 0);
    case Accepts::kPositive:
      return is_whole(text, 1);
    case Accepts::kNumber:
      return is_number(text, 1e9);
    case Accepts::kFraction:
      return is_number(text, 1);
    case Accepts::kLevel:
      return is_level(text);
    case Accepts::kText:
      break;
  }
  return !text.empty();
}

}  // namespace

std::span<const HorovodOption> horovod_options() { return kOptions; }

const HorovodOption* horovod_option(std::string_view name) {
  const auto found = std::ranges::find(kOptions, name, &HorovodOption::name);
  return found == kOptions.end() ? nullptr : &*found;
}

const HorovodOption* horovod_option_at(std::string_view place) {
  if (place.empty()) return nullptr;
  const auto found = std::ranges::find(kOptions, place, &HorovodOption::place);
  return found == kOptions.end() ? nullptr : &*found;
}

std::string accepted(const HorovodOption& option, std::string_view text, std::string_view source) {
  if (!is_accepted(option.accepts, text)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "{} {}: it takes {}", source, quoted_beginning(text), right_values(option.accepts)));
  }
  if (option.accepts == Accepts::kLevel) return in_small_letters(text);
  if (option.accepts != Accepts::kSwitch) return std::string(text);
  const std::string small = in_small_letters(text);
  const bool is_on = small == "true" || small == "yes" || small == "on" || small == "1";
  return is_on ? "1" : "0";
}

std::string variable_value(const HorovodOption& option, const std::string& value) {
  if (option.accepts == Accepts::kMegabytes) {
    return fmt::format("{}", try_parse_number<std::int64_t>(value).value_or(0) * 1024 * 1024);
  }
  if (option.accepts == Accepts::kSwitch && option.sense == Sense::kIsOff) {
    return value == "1" ? "0" : "1";
  }
  return value;
}

}  // namespace peal::cli
