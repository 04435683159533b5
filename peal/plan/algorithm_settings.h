// Chooses the algorithm by the configuration: PEAL_ALGORITHM first, then PEAL_TUNE, then the
// built-in table. The native backend asks for every operation; commands that explain a choice ask
// too.
#pragma once

#include "peal/config/config.h"
#include "peal/plan/table.h"

namespace peal::plan {

/// The rows of PEAL_TUNE. Errors: usage; the text names the variable, its file if there is one, and
/// the row or line.
Table rows_of(const Config& config);

/// The algorithm that PEAL_ALGORITHM names; null if the variable is not set. Errors: usage; the
/// text names the variable.
const Algorithm* forced_by(const Config& config);

class AlgorithmSettings final {
 public:
  /// Errors: those of rows_of and forced_by.
  explicit AlgorithmSettings(const Config& config);

  /// The forced algorithm if it applies, otherwise that of plan::choose. Threads: any.
  const Algorithm& choose(const schedule::Problem&, Bytes element) const;

 private:
  Table table_;
  const Algorithm* forced_;
};

}  // namespace peal::plan
