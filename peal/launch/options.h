// The options of a launch on this machine: a value, made by the program `peal run`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/host_plan.h"
#include "peal/launch/wording.h"
#include "peal/rendezvous/node_place.h"

namespace peal::launch {

/// The label before each line of a rank.
enum class Labels : unsigned char {
  kRank,    // "[0] "
  kHost,    // "[n2:0] ": the host and the rank
  kStream,  // "[0]<stdout>:", as horovodrun
  kNone,
};

/// Whether the local time comes before each line of a rank.
enum class Timestamps : unsigned char { kOff, kOn };

/// The names of the log files in LaunchOptions::log_directory.
enum class LogNames : unsigned char {
  kFiles,    // rank-0.out, rank-0.err
  kFolders,  // rank.0/stdout, rank.0/stderr, as horovodrun; all numbers have the same width
};

/// The CPUs that a rank may run on.
enum class Binding : unsigned char {
  kCores,  // its share of the cores that the launcher may use
  kNone,   // any CPU that the kernel chooses; OMP_NUM_THREADS is the rank's share nevertheless
};

/// An environment variable for every rank.
struct Assignment {
  std::string name;
  std::string value;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

/// The most ranks of a launch on one machine. More are a mistake.
inline constexpr int kMostRanks = 32'768;

struct LaunchOptions {
  std::vector<std::string> command;   // the program and its arguments; looked up in PATH
  int ranks = 1;                      // that this launch starts
  std::vector<HostSlots> hosts = {};  // names of this machine; empty: "localhost"
  rendezvous::NodePlace node = {};    // each node starts `ranks` ranks of the job
  Labels labels = Labels::kRank;
  Timestamps timestamps = Timestamps::kOff;
  Binding binding = Binding::kCores;
  std::vector<Assignment> variables;  // override inherited variables and defaults
  std::vector<int> hidden_out{};      // local ranks whose stdout is not shown, only logged
  std::vector<int> hidden_err{};      // the same for stderr
  std::string log_directory;          // for the output of each rank; empty: no logs
  LogNames log_names = LogNames::kFiles;
  Wording wording = {};
  /// When these ranks have ended with exit code 0, the job has succeeded, and the launcher ends the
  /// others. Empty: all ranks must end.
  std::vector<Rank> deciding{};
  std::optional<Timeout> time_limit{};  // then the launcher ends the ranks
  /// When Slurm ends the job.
  std::optional<TimePoint> allocation_end{};
  /// How long before the time limit or allocation_end the launcher sets the stop flags of the ranks
  /// (Guard::warn).
  std::optional<Timeout> warn_before{};
  /// The time between the request to end and the kill.
  Timeout grace = std::chrono::seconds(5);

  friend bool operator==(const LaunchOptions&, const LaunchOptions&) = default;
};

/// The rank of the job that is the first of this launch.
Rank first_rank_of(const LaunchOptions& options);
/// The ranks of all nodes.
int world_size_of(const LaunchOptions& options);

/// When the launcher warns the ranks, if the launch begins at `start`. TimePoint::max(): never.
TimePoint warning_time(const LaunchOptions& options, TimePoint start);

/// Rejects a missing command, less than one rank or too many, more ranks than slots, hosts for
/// one of several nodes, and a negative grace. Also rejects a variable by which the launcher sets
/// the identity of a rank or the address of its peers. Errors: usage; the text tells the user what
/// to do.
void check(const LaunchOptions& options);

}  // namespace peal::launch
