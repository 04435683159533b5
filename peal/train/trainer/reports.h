// The reports that a Trainer passes to its callbacks and returns. Epochs count from 0,
// steps from 1.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "peal/base/clock.h"

namespace peal::train {

// In an epoch that continues from a checkpoint, step_in_epoch, steps_in_epoch and the metrics count
// from there.

/// Before the first step of a fit().
struct StartReport {
  std::int64_t epoch = 0;  // the first to train; TrainerOptions::epochs if the run is complete
  std::int64_t step = 0;   // the steps that the run has taken before
  std::filesystem::path checkpoint = {};  // from which the run continues; empty: from none
};

struct StepReport {
  std::int64_t epoch = 0;
  std::int64_t step = 0;            // of the whole run, from 1
  std::int64_t step_in_epoch = 0;   // from 1
  std::int64_t steps_in_epoch = 0;  // for which this rank has data
  double loss = 0;           // the mean over this rank's samples of the step; NaN: no samples
  std::int64_t samples = 0;  // of this rank
  double learning_rate = 0;  // of the first group of parameters
};

struct EpochReport {
  std::int64_t epoch = 0;
  std::int64_t step = 0;                  // of the whole run
  std::map<std::string, double> metrics;  // means over the samples of all ranks; "loss" is one
  std::int64_t samples = 0;               // of this rank
  Duration duration = {};
};

/// Why a run has ended.
enum class RunEnd : unsigned char {
  kComplete,
  kStopped,  // by a signal on some rank, or by request_stop
};

/// The end of a fit(), the same on every rank.
struct RunReport {
  RunEnd end = RunEnd::kComplete;
  int signal = 0;          // SIGINT or SIGTERM, which has stopped the run; 0: none
  std::int64_t epoch = 0;  // in which the run was stopped; TrainerOptions::epochs if it is complete
  std::int64_t steps = 0;  // of the whole run, also before it continued
  std::filesystem::path checkpoint = {};       // the last one; empty: none was saved
  std::map<std::string, double> metrics = {};  // of the last complete epoch

  /// The code with which a program should end, as shells expect it: 0, or 128 + signal.
  int exit_code() const { return signal == 0 ? 0 : 128 + signal; }
};

}  // namespace peal::train
