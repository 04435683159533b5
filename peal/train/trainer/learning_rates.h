// Learning rates as functions of the step. A function has no state, so a run that continues from a
// checkpoint needs only the number of its step.
#pragma once

#include <cstdint>
#include <functional>

namespace peal::train {

/// The factor by which the learning rate of each group of parameters is multiplied in the step
/// `step`, from 0.
using LearningRateFactor = std::function<double(std::int64_t step)>;

/// (step + 1) / warmup below `warmup`. Then cosine from 1 down to `last` at `steps`, and `last`
/// after that.
/// Source: Loshchilov and Hutter 2017, SGDR: Stochastic Gradient Descent with Warm Restarts.
LearningRateFactor cosine_factor(std::int64_t steps, std::int64_t warmup = 0, double last = 0);

/// factor ^ (step / every), rounded down.
LearningRateFactor step_factor(std::int64_t every, double factor);

}  // namespace peal::train
