// What the configuration makes of choosing: PEAL_ALGORITHM first, then PEAL_TUNE, then the built-in
// table. Asked by the native backend for every operation, and by whoever says what it will do.
#pragma once

#include "peal/base/config.h"
#include "peal/plan/table.h"

namespace peal::plan {

/// The rows of PEAL_TUNE. Errors: usage, that names the variable, its file if there is one, and the
/// row or line.
Table rows_of(const Config& config);

/// The algorithm that PEAL_ALGORITHM names; null where it is not set. Errors: usage, that names the
/// variable.
const Algorithm* forced_by(const Config& config);

class Choices final {
 public:
  /// Errors: those of rows_of and forced_by.
  explicit Choices(const Config& config);

  /// The forced algorithm where it applies, else that of plan::choose. Threads: any.
  const Algorithm& choose(const schedule::Problem&, Bytes element) const;

 private:
  Table table_;
  const Algorithm* forced_;
};

}  // namespace peal::plan
