// The state of an optimizer as a value, with parameters by name. LibTorch's own archives key the
// state by address and load it by position. Used by checkpoints and by optimizers that share their
// state out to ranks.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>
#include <torch/types.h>

namespace peal::train {

/// Parameters and their names, as from torch::nn::Module::named_parameters().
using NamedParameters = torch::OrderedDict<std::string, torch::Tensor>;

/// Does not depend on addresses, on the order of parameters in a group, or on the number of ranks.
struct OptimizerState {
  /// The fields of one parameter, with LibTorch's names: "exp_avg", "momentum_buffer". Tensors have
  /// the shape of the parameter, but numbers ("step") have the shape [] and the type i64.
  using Fields = std::map<std::string, torch::Tensor>;
  /// With LibTorch's names: "lr", "weight_decay". The pair "betas" is "beta1" and "beta2"; booleans
  /// ("nesterov") are 0 or 1.
  using Options = std::map<std::string, double>;

  struct Group {
    Options options = {};
    std::vector<std::string> parameters = {};  // their names
  };

  std::string algorithm = {};  // "SGD", "Adam", "AdamW", "Adagrad" or "RMSprop"
  std::vector<Group> groups = {};
  /// By name. A parameter that has not been stepped has no entry.
  std::map<std::string, Fields> parameters = {};
};

/// The state of `optimizer`. A parameter with several names has its first name in
/// `named_parameters`. Tensors share the memory of the optimizer, so the next step changes them.
/// Errors: usage (a parameter of the optimizer is not in `named_parameters`), unsupported (LBFGS,
///   whose history belongs to all parameters together; optimizers outside of LibTorch).
OptimizerState read_optimizer_state(const torch::optim::Optimizer& optimizer,
                                    const NamedParameters& named_parameters);

/// The algorithm of an optimizer with these options: "Adam" for torch::optim::AdamOptions.
/// Errors: unsupported, as read_optimizer_state.
std::string algorithm_of(const torch::optim::OptimizerOptions& options);

/// The options of a group as numbers, and back: `load_options` sets each option.
/// Errors: unsupported, as read_optimizer_state. load_options: usage (an option is missing or
///   unknown); then no option has changed.
OptimizerState::Options read_options(const torch::optim::OptimizerOptions& options);
void load_options(torch::optim::OptimizerOptions& options, const OptimizerState::Options& values);

/// Throws unless an optimizer with these defaults and groups can load `state`. Groups are matched
/// by position, and must have the same parameters in any order.
/// Errors: usage, with a line for each difference (algorithm, groups, fields, shapes, types), and
///   those of read_optimizer_state.
void require_loadable(const torch::optim::OptimizerOptions& defaults,
                      const std::vector<torch::optim::OptimizerParamGroup>& groups,
                      const NamedParameters& named_parameters,
                      const OptimizerState& state);

/// Replaces the options and the state of `optimizer` by copies of those in `state`; a second load
/// of the same state changes nothing. The tensors get the device and the strides of their
/// parameter, and numbers stay on the CPU.
/// Errors: those of require_loadable. After an error the optimizer has not changed.
void load_optimizer_state(torch::optim::Optimizer& optimizer,
                          const NamedParameters& named_parameters,
                          const OptimizerState& state);

}  // namespace peal::train
