// Shows the progress of training on a terminal, or a line for each epoch in a file.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/train/trainer/reports.h"

namespace peal::train {

/// Writes on rank 0 only:
///   ProgressBar bar(std::cout, group->rank(), epochs);
///   trainer.on_step([&](const StepReport& report) { bar.step(report); });
///   trainer.on_epoch([&](const EpochReport& report) { bar.end_epoch(report); });
class ProgressBar final {
 public:
  /// The bar is drawn if `columns` is not 0. terminal_columns() is the width of the terminal.
  ProgressBar(std::ostream& out, Rank rank, std::int64_t epochs, int columns = terminal_columns());

  void step(const StepReport& report);
  void end_epoch(const EpochReport& report);

  /// The width of the terminal that shows the standard output of this process, also under
  /// `peal run`; 0 without a terminal.
  static int terminal_columns();

 private:
  std::ostream& out_;
  bool is_silent_;
  std::int64_t epochs_;
  int columns_;
  TimePoint drawn_ = {};
};

}  // namespace peal::train
