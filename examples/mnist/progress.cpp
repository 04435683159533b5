#include "mnist/progress.h"

#include <algorithm>
#include <iostream>

#include <fmt/format.h>

namespace {

constexpr int kBesideTheBar = 52;  // columns
constexpr int kLongestBar = 40;
constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr const char* kClearRest = "\033[K";  // clears old text behind the new text of the row

}  // namespace

Progress::Progress(Voice voice, int columns, int epochs, std::int64_t global_batch)
    : voice_(voice), columns_(columns), epochs_(epochs), global_batch_(global_batch) {}

void Progress::say(const std::string& line) {
  if (voice_ == Voice::kSilent) return;
  std::cout << line + (columns_ > 0 ? kClearRest : "") + "\n" << std::flush;
}

void Progress::begin_epoch(int epoch, std::int64_t steps) {
  epoch_ = epoch;
  steps_ = steps;
  step_ = 0;
  busy_in_epoch_ = {};
  last_ = Clock::now();
}

void Progress::step(double loss) {
  const auto now = Clock::now();
  busy_ += now - last_;
  busy_in_epoch_ += now - last_;
  last_ = now;
  step_ += 1;
  if (voice_ == Voice::kSpeaking && columns_ > 0 && now - drawn_ > kBetweenDrawings) {
    draw(loss);
    drawn_ = now;
  }
}

void Progress::end_epoch(double loss, double accuracy) {
  say(fmt::format(
      "epoch {} of {}: loss {:.4f}, {:.1f}% of the held-out digits right, {:.0f} samples/s",
      epoch_,
      epochs_,
      loss,
      100 * accuracy,
      samples_per_second()));
}

double Progress::seconds() const { return std::chrono::duration<double>(busy_).count(); }

double Progress::samples_per_second() const {
  const double seconds = std::chrono::duration<double>(busy_in_epoch_).count();
  return seconds > 0 ? static_cast<double>(step_ * global_batch_) / seconds : 0;
}

// The line ends in a carriage return, so the next line overwrites it.
void Progress::draw(double loss) {
  const int length = std::clamp(columns_ - kBesideTheBar, 1, kLongestBar);
  const auto done = static_cast<std::size_t>(length * step_ / steps_);
  std::string bar = fmt::format("epoch {}/{} [{:<{}}] {:>3}/{} loss {:.3f} {:>6.0f} samples/s",
                                epoch_,
                                epochs_,
                                std::string(done, '#'),
                                length,
                                step_,
                                steps_,
                                loss,
                                samples_per_second());
  bar.resize(std::min(bar.size(), static_cast<std::size_t>(columns_ - 1)));  // never a second row
  std::cout << bar + kClearRest + "\r" << std::flush;
}
