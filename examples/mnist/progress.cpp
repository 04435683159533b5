#include "mnist/progress.h"

#include <unistd.h>

#include <iostream>

#include <fmt/format.h>

namespace {

constexpr int kBarWidth = 30;
constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);

std::filesystem::path terminal_or_nothing(const std::filesystem::path& wish) {
  if (!wish.empty()) return wish;
  const char* const own = ::isatty(STDOUT_FILENO) == 1 ? ::ttyname(STDOUT_FILENO) : nullptr;
  return own != nullptr ? own : "";
}

}  // namespace

Progress::Progress(Voice voice,
                   const std::filesystem::path& terminal,
                   int epochs,
                   std::int64_t global_batch)
    : voice_(voice), epochs_(epochs), global_batch_(global_batch) {
  if (voice_ == Voice::kSpeaking) terminal_.open(terminal_or_nothing(terminal));
}

void Progress::say(const std::string& line) {
  if (voice_ == Voice::kSpeaking) std::cout << line + "\n" << std::flush;
}

void Progress::begin_epoch(int epoch, std::int64_t steps) {
  epoch_ = epoch;
  steps_ = steps;
  step_ = 0;
  last_ = Clock::now();
}

void Progress::step(double loss) {
  const auto now = Clock::now();
  busy_ += now - last_;
  last_ = now;
  step_ += 1;
  samples_ += global_batch_;
  if (terminal_.is_open() && now - drawn_ > kBetweenDrawings) {
    draw(loss);
    drawn_ = now;
  }
}

void Progress::end_epoch(double loss, double accuracy) {
  wipe();
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
  return busy_.count() > 0 ? static_cast<double>(samples_) / seconds() : 0;
}

void Progress::draw(double loss) {
  const auto done = static_cast<int>(kBarWidth * step_ / steps_);
  terminal_ << fmt::format("\repoch {}/{} [{:<{}}] {:>3}/{} loss {:.3f} {:>6.0f} samples/s",
                           epoch_,
                           epochs_,
                           std::string(static_cast<std::size_t>(done), '#'),
                           kBarWidth,
                           step_,
                           steps_,
                           loss,
                           samples_per_second())
            << std::flush;
}

void Progress::wipe() {
  if (terminal_.is_open()) terminal_ << "\r\033[K" << std::flush;
}
