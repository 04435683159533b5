// The second half of `peal bench`: runs the request and writes the results.
#pragma once

#include <string>

#include "peal/bench/bench.h"

namespace peal::cli {

/// The request of the arguments of `peal bench`. An empty path means no file.
struct BenchRequest {
  bench::BenchOptions options;
  std::string json_path, baseline_path;
  double tolerance = 0.5;
  /// With options.algorithms: the file for the text of PEAL_TUNE, which also goes to stdout.
  std::string tune_path;
};

/// Measures, and writes the files. The table goes to stdout; failures and missing features go to
/// stderr. Returns the exit code: 1 if a result was wrong, a worker died, or a ratio is worse than
/// the baseline allows.
/// Errors: usage, resource.
int run(const BenchRequest& request);

}  // namespace peal::cli
