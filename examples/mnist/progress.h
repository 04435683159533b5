// Shows the progress of training: a bar on a terminal, otherwise a line for each epoch.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

class Progress {
 public:
  enum class Voice { kSilent, kSpeaking };

  /// `columns` of the terminal; 0 without a terminal.
  Progress(Voice voice, int columns, int epochs, std::int64_t global_batch);

  void say(const std::string& line);
  void begin_epoch(int epoch, std::int64_t steps);
  void step(double loss);
  /// Takes the loss and accuracy over all ranks.
  void end_epoch(double loss, double accuracy);

  /// The time of all steps so far, without the time between epochs.
  double seconds() const;
  /// For this epoch, over all ranks. The first epoch is slower than the others, because caches are
  /// cold.
  double samples_per_second() const;

 private:
  using Clock = std::chrono::steady_clock;

  void draw(double loss);

  Voice voice_;
  int columns_;
  int epochs_;
  std::int64_t global_batch_;
  int epoch_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t step_ = 0;
  Clock::duration busy_{};  // in all epochs
  Clock::duration busy_in_epoch_{};
  Clock::time_point last_;
  Clock::time_point drawn_;
};
