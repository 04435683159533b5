// Shows the progress of training on a terminal, or a line for each epoch in a file. Says from which
// checkpoint the run continues, and why it has stopped.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/train/trainer/reports.h"

namespace peal::train {

/// Writes on rank 0 only:
///   ProgressBar bar(std::cout, group->rank(), epochs);
///   bar.show(trainer);  // the bar must live as long as the trainer trains
/// For programs whose users choose the number of epochs. Other programs print lines of their own,
/// as examples/gpt does for steps.
class ProgressBar final {
 public:
  /// The bar is drawn if `columns` is not 0. terminal_columns() is the width of the terminal.
  ProgressBar(std::ostream& out, Rank rank, std::int64_t epochs, int columns = terminal_columns());

  /// Adds the functions below to the callbacks of the trainer.
  template <class Trainer>
  void show(Trainer& trainer) {
    trainer.on_start([this](const StartReport& report) { start(report); });
    trainer.on_step([this](const StepReport& report) { step(report); });
    trainer.on_epoch([this](const EpochReport& report) { end_epoch(report); });
    trainer.on_end([this](const RunReport& report) { end(report); });
  }

  /// Writes a line if the run continues from a checkpoint, or is complete already.
  void start(const StartReport& report);
  void step(const StepReport& report);
  void end_epoch(const EpochReport& report);
  /// Writes a line if the run was stopped.
  void end(const RunReport& report);

  /// The width of the terminal that shows the standard output of this process, also under
  /// `peal run`; 0 without a terminal.
  static int terminal_columns();

 private:
  void write_row(const std::string& text);

  std::ostream& out_;
  bool is_silent_;
  std::int64_t epochs_;
  int columns_;
  TimePoint drawn_ = {};
};

}  // namespace peal::train
