#include "peal/train/trainer/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <string>

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
  row << (columns_ > 0 ? "\r" : "") << "epoch " << report.epoch + 1 << '/' << epochs_;
  row << std::fixed << std::setprecision(4);
  for (const auto& [name, value] : report.metrics) row << "  " << name << ' ' << value;
  row << "  " << std::setprecision(1) << std::chrono::duration<double>(report.duration).count()
      << " s" << (columns_ > 0 ? kClearRest : "") << '\n';
  out_ << row.str() << std::flush;
}

int ProgressBar::terminal_columns() {
  if (const char* const width = std::getenv("PEAL_TERMINAL_WIDTH")) return std::atoi(width);
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

}  // namespace peal::train
