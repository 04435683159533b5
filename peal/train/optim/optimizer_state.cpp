#include "peal/train/optim/optimizer_state.h"

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/optim/first_names.h"
#include "peal/train/optim/optimizer_fields.h"
#include "peal/train/optim/state_differences.h"

namespace peal::train {
namespace {

using torch::Tensor;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamGroup;
using torch::optim::OptimizerParamState;
using StatePtr = std::unique_ptr<OptimizerParamState>;

// ---- one algorithm: its types behind functions

template <class Options>
bool has_type(const OptimizerOptions& options) {
  return dynamic_cast<const Options*>(&options) != nullptr;
}

template <class Options>
OptimizerState::Options options_as_numbers(const OptimizerOptions& options) {
  OptimizerState::Options numbers;
  each_option(dynamic_cast<const Options&>(options),
              [&](const char* name, auto value) { numbers[name] = static_cast<double>(value); });
  return numbers;
}

/// Sets the options that `numbers` has.
template <class Options>
void set_options(OptimizerOptions& options, const OptimizerState::Options& numbers) {
  each_option(dynamic_cast<Options&>(options), [&](const char* name, auto& value) {
    const auto number = numbers.find(name);
    if (number == numbers.end()) return;
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, bool>) {
      value = number->second != 0;
    } else {
      value = number->second;
    }
  });
}

Tensor number_tensor(std::int64_t number) { return torch::scalar_tensor(number, torch::kInt64); }

template <class State>
OptimizerState::Fields fields_as_tensors(const OptimizerParamState& state) {
  OptimizerState::Fields fields;
  const auto* typed = dynamic_cast<const State*>(&state);
  if (typed == nullptr) {
    throw Error(ErrorKind::kUnsupported,
                "the optimizer's state has another type than its options: use the state and the "
                "options of one optimizer of LibTorch");
  }
  each_field(*typed, [&](const char* name, const auto& value, Presence) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Tensor>) {
      if (value.defined()) fields[name] = value.detach();
    } else {
      fields[name] = number_tensor(value);
    }
  });
  return fields;
}

void copy_field(const Tensor& from,
                const Tensor& parameter,
                Tensor& to,
                const std::string& name,
                Differences& differences) {
  if (!compare_forms(name, from, parameter, differences)) return;
  const torch::NoGradGuard no_grad;
  to = torch::empty_like(parameter).copy_(from);
}

void copy_field(const Tensor& from,
                const Tensor&,
                std::int64_t& to,
                const std::string& name,
                Differences& differences) {
  if (from.dim() == 0 && from.scalar_type() == torch::kInt64) {
    to = from.item<std::int64_t>();
    return;
  }
  differences.push_back(c10::str(name,
                                 " is ",
                                 from.scalar_type(),
                                 " of shape ",
                                 from.sizes(),
                                 " in the state, but must be Long of shape []"));
}

/// A state of the parameter `name` with copies of `fields`.
template <class State>
StatePtr state_from(const OptimizerState::Fields& fields,
                    const Tensor& parameter,
                    const std::string& name,
                    Differences& differences) {
  auto state = std::make_unique<State>();
  std::size_t found = 0;
  each_field(*state, [&](const char* field, auto& value, Presence presence) {
    const auto saved = fields.find(field);
    const std::string full_name = name + ": " + field;
    if (saved != fields.end() && saved->second.defined()) {
      ++found;
      copy_field(saved->second, parameter, value, full_name, differences);
    } else if (presence == Presence::kAlways) {
      differences.push_back(full_name + " is missing from the state");
    }
  });
  if (found != fields.size()) {
    differences.push_back(name + ": the state has fields that the optimizer does not have");
  }
  return state;
}

/// Whether a new optimizer has a state for each parameter, or makes it in the first step.
enum class FirstState : unsigned char { kInStep, kInConstructor };

struct Algorithm {
  const char* name;
  FirstState first_state;
  bool (*matches)(const OptimizerOptions&);
  OptimizerState::Options (*read_options)(const OptimizerOptions&);
  void (*set_options)(OptimizerOptions&, const OptimizerState::Options&);
  OptimizerState::Fields (*read_fields)(const OptimizerParamState&);
  StatePtr (*make_state)(const OptimizerState::Fields&,
                         const Tensor&,
                         const std::string&,
                         Differences&);
};

template <class Options, class State>
constexpr Algorithm make_algorithm(const char* name, FirstState first_state = FirstState::kInStep) {
  return {name,
          first_state,
          has_type<Options>,
          options_as_numbers<Options>,
          set_options<Options>,
          fields_as_tensors<State>,
          state_from<State>};
}

constexpr Algorithm kAlgorithms[] = {
    make_algorithm<torch::optim::SGDOptions, torch::optim::SGDParamState>("SGD"),
    make_algorithm<torch::optim::AdamOptions, torch::optim::AdamParamState>("Adam"),
    make_algorithm<torch::optim::AdamWOptions, torch::optim::AdamWParamState>("AdamW"),
    make_algorithm<torch::optim::AdagradOptions, torch::optim::AdagradParamState>(
        "Adagrad", FirstState::kInConstructor),
    make_algorithm<torch::optim::RMSpropOptions, torch::optim::RMSpropParamState>("RMSprop"),
};

const Algorithm& find_algorithm(const OptimizerOptions& options) {
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.matches(options)) return algorithm;
  }
  throw Error(ErrorKind::kUnsupported,
              has_type<torch::optim::LBFGSOptions>(options)
                  ? "the state of LBFGS cannot be saved by parameter, because its history belongs "
                    "to all parameters together: use another optimizer, or start LBFGS again"
                  : "the state of an optimizer that is not of LibTorch cannot be saved: use SGD, "
                    "Adam, AdamW, Adagrad or RMSprop");
}

// ---- comparison

void compare_options(const OptimizerState::Options& ours,
                     const OptimizerState::Options& saved,
                     const std::string& where,
                     Differences& differences) {
  for (const auto& [name, value] : ours) {
    if (!saved.contains(name)) differences.push_back(where + "option " + name + " is missing");
  }
  for (const auto& [name, value] : saved) {
    if (!ours.contains(name)) differences.push_back(where + "option " + name + " is unknown");
  }
}

/// Compares all but the fields.
void require_same_form(const torch::optim::Optimizer& optimizer,
                       const Algorithm& algorithm,
                       const FirstNames& names,
                       const OptimizerState& state) {
  Differences differences;
  const auto& groups = optimizer.param_groups();
  if (state.algorithm != algorithm.name) {
    differences.push_back("the state is of " + state.algorithm + ", but the optimizer is " +
                          algorithm.name);
  }
  compare_group_counts(groups.size(), state.groups.size(), differences);
  require_none(differences);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    compare_parameters(groups[i], state.groups[i], names, i, differences);
    compare_options(algorithm.read_options(groups[i].options()),
                    state.groups[i].options,
                    c10::str("group ", i, ": "),
                    differences);
  }
  require_none(differences);
}

}  // namespace

std::string algorithm_of(const OptimizerOptions& options) { return find_algorithm(options).name; }

OptimizerState::Options read_options(const OptimizerOptions& options) {
  return find_algorithm(options).read_options(options);
}

void load_options(OptimizerOptions& options, const OptimizerState::Options& values) {
  const Algorithm& algorithm = find_algorithm(options);
  Differences differences;
  compare_options(algorithm.read_options(options), values, "", differences);
  require_none(differences);
  algorithm.set_options(options, values);
}

OptimizerState read_optimizer_state(const torch::optim::Optimizer& optimizer,
                                    const NamedParameters& named_parameters) {
  const Algorithm& algorithm = find_algorithm(optimizer.defaults());
  const FirstNames names(named_parameters);
  OptimizerState result{.algorithm = algorithm.name};
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    OptimizerState::Group& saved = result.groups.emplace_back();
    saved.options = algorithm.read_options(group.options());
    for (const Tensor& parameter : group.params()) {
      const std::string& name = names.of(parameter);
      saved.parameters.push_back(name);
      const auto state = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (state == optimizer.state().end()) continue;
      result.parameters[name] = algorithm.read_fields(*state->second);
    }
  }
  return result;
}

void load_optimizer_state(torch::optim::Optimizer& optimizer,
                          const NamedParameters& named_parameters,
                          const OptimizerState& state) {
  const Algorithm& algorithm = find_algorithm(optimizer.defaults());
  const FirstNames names(named_parameters);
  require_same_form(optimizer, algorithm, names, state);

  std::map<std::string, const OptimizerState::Fields*> saved;
  for (const auto& [name, fields] : state.parameters) saved[names.first_of(name)] = &fields;
  Differences differences;
  std::remove_reference_t<decltype(optimizer.state())> loaded;
  for (const OptimizerParamGroup& group : optimizer.param_groups()) {
    for (const Tensor& parameter : group.params()) {
      const auto fields = saved.find(names.of(parameter));
      if (fields == saved.end()) {
        if (algorithm.first_state == FirstState::kInStep) continue;
        differences.push_back(names.of(parameter) + " has no fields in the state");
        continue;
      }
      loaded[parameter.unsafeGetTensorImpl()] =
          algorithm.make_state(*fields->second, parameter, fields->first, differences);
      saved.erase(fields);
    }
  }
  for (const auto& [name, fields] : saved) {
    differences.push_back(name + " is not a parameter of the optimizer");
  }
  require_none(differences);

  for (std::size_t i = 0; i < state.groups.size(); ++i) {
    algorithm.set_options(optimizer.param_groups()[i].options(), state.groups[i].options);
  }
  optimizer.state() = std::move(loaded);
}

}  // namespace peal::train
