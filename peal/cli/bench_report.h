// The second half of `peal bench`: runs what was asked for, and writes what comes of it.
#pragma once

#include <string>

#include "peal/bench/bench.h"

namespace peal::cli {

/// What `peal bench` was asked for. A path that is empty stands for no such file.
struct BenchRequest {
  bench::BenchOptions options;
  std::string json_path, plot_path, baseline_path;
  double tolerance = 0.5;
  /// With options.algorithms: where the text for PEAL_TUNE goes, beside stdout.
  std::string tune_path;
};

/// Measures, writes the table to stdout, what is left out and what went wrong to stderr, and the
/// files. Returns the exit code: 1 when a result was wrong, a worker died, or a ratio is worse than
/// the baseline allows. Errors: usage, resource.
int run(const BenchRequest& request);

}  // namespace peal::cli
