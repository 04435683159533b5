// The reports that a Trainer passes to its callbacks.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "peal/base/clock.h"

namespace peal::train {

// In an epoch that continues from a checkpoint, step_in_epoch, steps_in_epoch and the metrics count
// from there.

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

}  // namespace peal::train
