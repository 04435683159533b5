#include "peal/train/horovod/optimizer_values.h"

#include <cstddef>

#include <torch/torch.h>

namespace peal::hvd {

train::NamedParameters numbered_parameters(const torch::optim::Optimizer& optimizer) {
  train::NamedParameters named;
  const auto& groups = optimizer.param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const auto& parameters = groups[g].params();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      named.insert(c10::str(g, ".", i), parameters[i]);
    }
  }
  return named;
}

train::OptimizerState copy_of_state(const torch::optim::Optimizer& optimizer) {
  const torch::NoGradGuard no_grad;
  train::OptimizerState state =
      train::read_optimizer_state(optimizer, numbered_parameters(optimizer));
  for (auto& [name, fields] : state.parameters) {
    for (auto& [field, tensor] : fields) tensor = tensor.clone();
  }
  return state;
}

void load_state(torch::optim::Optimizer& optimizer, const train::OptimizerState& state) {
  train::load_optimizer_state(optimizer, numbered_parameters(optimizer), state);
}

}  // namespace peal::hvd
