// A step of an optimizer by LibTorch's fused kernels, which its C++ optimizers do not use. For
// users of any optimizer, and for ZeroRedundancyOptimizer.
#pragma once

#include <torch/optim/optimizer.h>

namespace peal::train {

/// The same as optimizer.step(), up to rounding, with the same state. One pass over the memory
/// updates all dense parameters on the CPU: for Adam, AdamW and Adagrad those of type f32, f64,
/// bf16 and f16, for SGD those of type f32 and f64. optimizer.step() updates all other parameters,
/// and those of other optimizers. The kernels compute bf16 and f16 in f32, and round once.
/// Threads: those of LibTorch, inside each parameter.
/// Errors: those of optimizer.step().
/// Cost: AdamW reads four and writes three values for each element.
void fused_step(torch::optim::Optimizer& optimizer);

}  // namespace peal::train
