#include "peal/train/trainer/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>

#include "peal/system/process_state.h"

namespace peal::train {
namespace {

constexpr int kBesideTheBar = 44;  // columns
constexpr int kLongestBar = 40;
constexpr int kUsualColumns = 80;
constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr const char* kClearRest = "\033[K";  // clears old text behind the new text of the row

std::string bar_of(double done, int columns) {
  const int width = std::clamp(columns - kBesideTheBar, 0, kLongestBar);
  const auto filled = static_cast<std::size_t>(done * width);
  return '[' + std::string(filled, '=') +
         std::string(static_cast<std::size_t>(width) - filled, ' ') + ']';
}

}  // namespace

ProgressBar::ProgressBar(std::ostream& out, Rank rank, std::int64_t epochs, int columns)
    : out_(out), is_silent_(rank != 0), epochs_(epochs), columns_(columns) {}

void ProgressBar::step(const StepReport& report) {
  const TimePoint now = Clock::now();
  if (is_silent_ || columns_ == 0 || now - drawn_ < kBetweenDrawings) return;
  drawn_ = now;
  std::ostringstream row;
  row << "\repoch " << report.epoch + 1 << '/' << epochs_ << ' ';
  if (report.steps_in_epoch > 0) {
    const double done =
        static_cast<double>(report.step_in_epoch) / static_cast<double>(report.steps_in_epoch);
    row << bar_of(std::min(done, 1.0), columns_) << ' ';
  }
  row << "step " << report.step_in_epoch << "  loss " << std::fixed << std::setprecision(4)
      << report.loss << kClearRest;
  out_ << row.str() << std::flush;
}

void ProgressBar::end_epoch(const EpochReport& report) {
  if (is_silent_) return;
  std::ostringstream row;
  row << "epoch " << report.epoch + 1 << '/' << epochs_;
  row << std::fixed << std::setprecision(4);
  for (const auto& [name, value] : report.metrics) row << "  " << name << ' ' << value;
  row << "  " << std::setprecision(1) << std::chrono::duration<double>(report.duration).count()
      << " s";
  write_row(row.str());
}

void ProgressBar::start(const StartReport& report) {
  if (is_silent_ || report.step == 0) return;
  const bool is_complete = report.epoch >= epochs_;
  std::ostringstream row;
  row << (is_complete ? "Training is complete already, after" : "Training continues after");
  row << " step " << report.step;
  if (!report.checkpoint.empty()) row << " in " << report.checkpoint.string();
  if (is_complete) {
    row << ". To train longer, increase the number of epochs, which is " << epochs_ << '.';
  }
  write_row(row.str());
}

void ProgressBar::end(const RunReport& report) {
  if (is_silent_ || report.end != RunEnd::kStopped) return;
  std::ostringstream row;
  row << (report.signal == 0 ? "Stopped" : "Interrupted by " + signal_name(report.signal))
      << " in epoch " << report.epoch + 1 << " after step " << report.steps << ". ";
  if (report.checkpoint.empty()) {
    row << "No checkpoint was saved. To continue after a stop, set a folder for checkpoints.";
  } else {
    row << "The checkpoint is in " << report.checkpoint.string()
        << "; run the same command again to continue.";
  }
  write_row(row.str());
}

/// In place of the bar.
void ProgressBar::write_row(const std::string& text) {
  out_ << (columns_ > 0 ? "\r" : "") << text << (columns_ > 0 ? kClearRest : "") << std::endl;
}

int ProgressBar::terminal_columns() {
  if (const char* const width = std::getenv("PEAL_TERMINAL_WIDTH")) return std::atoi(width);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace peal::train
