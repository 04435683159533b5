// A whole benchmark, from options to results. Called by `peal bench`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/bench/case.h"
#include "peal/bench/host_net.h"
#include "peal/bench/measure.h"
#include "peal/bench/result.h"
#include "peal/config/config.h"

namespace peal::bench {

struct BenchOptions {
  std::vector<Op> ops;
  std::vector<int> ranks = {2};
  std::vector<Bytes> sizes;
  std::vector<DType> dtypes = {DType::kF32};
  std::vector<std::string> peers;  // "gloo", "openmpi", "mpich"; "mpi": all installed MPIs
  std::vector<std::string> memory = {"registered", "foreign"};
  BlockPlace place = BlockPlace::kOut;
  TransportChoice transport = TransportChoice::kAuto;
  MeasureOptions measure;
  HostOptions hosts;  // network namespaces (host_net.h)
  /// Algorithms of peal to compare with each other, instead of comparing backends (tune.h).
  std::vector<std::string> algorithms;
};

/// The progress of the cases with this number of ranks, before a case.
struct Progress {
  std::size_t done = 0;
  std::size_t cases = 0;
  double seconds_left = 0;  // an estimate from the pace so far
  Case next;
};

/// Callbacks during a run.
struct BenchSink {
  /// Before the cases with `ranks` ranks: the backends that take part ("openmpi": "Open MPI
  /// v4.1.4"), and those that are left out, with the reason.
  std::function<void(int ranks, const std::vector<std::string>& lines)> begin;
  std::function<void(const Progress&)> progress;
  std::function<void(const std::vector<Result>& of_one_case)> results;
  std::function<void(const Incident&)> incident;
};

/// The names that `peers` may have.
const std::vector<std::string>& known_peers();
/// `peers` without duplicates, and with the installed MPIs instead of "mpi".
std::vector<std::string> resolve_peers(const std::vector<std::string>& peers);
/// All cases for this number of ranks, each once, in the order of the options.
std::vector<Case> cases_of(const BenchOptions& options, int ranks);

/// The measurements of peal in a run: a result without times for each case and kind of memory.
std::vector<Result> planned_results(const BenchOptions& options);

/// Measures all cases. Changes the handling of signals while it runs.
/// Threads: the only thread of the program, because it forks.
/// Errors: usage, resource; SignalReceived (session.h).
void run(const BenchOptions& options, const BenchSink& sink);

}  // namespace peal::bench
