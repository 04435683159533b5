#include "peal/train/trainer/learning_rates.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "peal/base/error.h"

namespace peal::train {

LearningRateFactor cosine_factor(std::int64_t steps, std::int64_t warmup, double last) {
  if (warmup < 0 || steps <= warmup) {
    throw Error(ErrorKind::kUsage,
                "a cosine over " + std::to_string(steps) + " steps with " + std::to_string(warmup) +
                    " steps of warm-up: it needs more steps than warm-up");
  }
  return [=](std::int64_t step) {
    if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double done =
        std::min(1.0, static_cast<double>(step - warmup) / static_cast<double>(steps - warmup));
    return last + (1 - last) * (1 + std::cos(std::numbers::pi * done)) / 2;
  };
}

LearningRateFactor step_factor(std::int64_t every, double factor) {
  if (every < 1) {
    throw Error(ErrorKind::kUsage,
                "a learning rate that changes every " + std::to_string(every) +
                    " steps: the number is at least 1");
  }
  return [=](std::int64_t step) { return std::pow(factor, static_cast<double>(step / every)); };
}

}  // namespace peal::train
