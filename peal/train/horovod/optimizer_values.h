// The state of an optimizer as a value, with parameters by their place: programs give Horovod no
// names of them. Used by functions.cpp and elastic.cpp.
#pragma once

#include <torch/optim/optimizer.h>

#include "peal/train/optim/optimizer_state.h"

namespace peal::hvd {

/// "<group>.<index>" for each parameter.
train::NamedParameters numbered_parameters(const torch::optim::Optimizer& optimizer);

/// A copy that later steps do not change. Errors: unsupported, as train::read_optimizer_state.
train::OptimizerState copy_of_state(const torch::optim::Optimizer& optimizer);

/// Errors: as train::load_optimizer_state.
void load_state(torch::optim::Optimizer& optimizer, const train::OptimizerState& state);

}  // namespace peal::hvd
