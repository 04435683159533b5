// A whole benchmark, from options to results. Called by `peal bench`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "peal/base/config.h"
#include "peal/base/dtype.h"
#include "peal/bench/case.h"
#include "peal/bench/host_net.h"
#include "peal/bench/measure.h"
#include "peal/bench/result.h"

namespace peal::bench {

struct BenchOptions {
  std::vector<Op> ops;
  std::vector<int> ranks = {2};
  std::vector<Bytes> sizes;
  std::vector<DType> dtypes = {DType::kF32};
  std::vector<std::string> peers;  // "gloo", "openmpi", "mpich"; "mpi": all MPIs that there are
  std::vector<std::string> memory = {"registered", "foreign"};
  Place place = Place::kOut;
  TransportChoice transport = TransportChoice::kAuto;
  MeasureOptions measure;
  HostOptions hosts;  // network namespaces (host_net.h)
  /// Names of peal's algorithms to measure against each other, instead of anything else (tune.h).
  std::vector<std::string> algorithms;
};

/// Before a case: how far the run has come with this number of ranks.
struct Progress {
  std::size_t done = 0;
  std::size_t cases = 0;
  double seconds_left = 0;  // about, if it goes on as so far
  Case next;
};

/// What the caller hears while it goes on.
struct BenchSink {
  /// Before the cases of so many ranks: what takes part ("openmpi": "Open MPI v4.1.4") and what is
  /// left out, with the reason.
  std::function<void(int ranks, const std::vector<std::string>& lines)> begin;
  std::function<void(const Progress&)> progress;
  std::function<void(const std::vector<Result>& of_one_case)> results;
  std::function<void(const Incident&)> incident;
};

/// The names that `peers` may have.
const std::vector<std::string>& known_peers();
/// `peers` with "mpi" and duplicates resolved, as far as it is installed.
std::vector<std::string> resolve_peers(const std::vector<std::string>& peers);
/// All cases for so many ranks, each once, in the order of the options.
std::vector<Case> cases_of(const BenchOptions& options, int ranks);

/// Of peal itself, what a run will measure: a result without times for each case and kind of
/// memory.
std::vector<Result> planned_results(const BenchOptions& options);

/// Measures all cases. Threads: the program's only one, since it forks. Signal handling is changed
/// while it runs. Errors: usage, resource; Interrupted (session.h).
void run(const BenchOptions& options, const BenchSink& sink);

}  // namespace peal::bench
