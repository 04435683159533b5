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

/// Adds a difference if the saved field cannot be a field of this kind, of this parameter.
void compare_field(const Tensor& saved,
                   const Tensor& /*field*/,
                   const Tensor& parameter,
                   const std::string& name,
                   Differences& differences) {
  compare_forms(name, saved, parameter, differences);
}

void compare_field(const Tensor& saved,
                   std::int64_t /*field*/,
                   const Tensor& /*parameter*/,
                   const std::string& name,
                   Differences& differences) {
  if (saved.dim() == 0 && saved.scalar_type() == torch::kInt64) return;
  differences.push_back(c10::str(name,
                                 " is ",
                                 saved.scalar_type(),
                                 " of shape ",
                                 saved.sizes(),
                                 " in the state, but must be Long of shape []"));
}

/// Adds a difference for each of the saved fields that the parameter `name` cannot load.
template <class State>
void compare_fields(const OptimizerState::Fields& saved,
                    const Tensor& parameter,
                    const std::string& name,
                    Differences& differences) {
  const State empty{};
  std::size_t found = 0;
  each_field(empty, [&](const char* field, const auto& value, Presence presence) {
    const auto one = saved.find(field);
    const std::string full_name = name + ": " + field;
    if (one != saved.end() && one->second.defined()) {
      ++found;
      compare_field(one->second, value, parameter, full_name, differences);
    } else if (presence == Presence::kAlways) {
      differences.push_back(full_name + " is missing from the state");
    }
  });
  if (found != saved.size()) {
    differences.push_back(name + ": the state has fields that the optimizer does not have");
  }
}

void copy_field(const Tensor& from, const Tensor& parameter, Tensor& to) {
  const torch::NoGradGuard no_grad;
  to = torch::empty_like(parameter).copy_(from);
}

void copy_field(const Tensor& from, const Tensor&, std::int64_t& to) {
  to = from.item<std::int64_t>();
}

/// A state with copies of `fields`, which compare_fields has accepted.
template <class State>
StatePtr state_from(const OptimizerState::Fields& fields, const Tensor& parameter) {
  auto state = std::make_unique<State>();
  each_field(*state, [&](const char* field, auto& value, Presence) {
    const auto saved = fields.find(field);
    if (saved != fields.end()) copy_field(saved->second, parameter, value);
  });
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
  void (*compare_fields)(const OptimizerState::Fields&,
                         const Tensor&,
                         const std::string&,
                         Differences&);
  StatePtr (*make_state)(const OptimizerState::Fields&, const Tensor&);
};

template <class Options, class State>
constexpr Algorithm make_algorithm(const char* name, FirstState first_state = FirstState::kInStep) {
  return {name,
          first_state,
          has_type<Options>,
          options_as_numbers<Options>,
          set_options<Options>,
          fields_as_tensors<State>,
          compare_fields<State>,
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
void require_same_form(const std::vector<OptimizerParamGroup>& groups,
                       const Algorithm& algorithm,
                       const FirstNames& names,
                       const OptimizerState& state) {
  Differences differences;
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

/// The fields of each parameter by its first name. Borrows `state`.
std::map<std::string, const OptimizerState::Fields*> fields_by_first_name(
    const OptimizerState& state, const FirstNames& names) {
  std::map<std::string, const OptimizerState::Fields*> fields;
  for (const auto& [name, saved] : state.parameters) fields[names.first_of(name)] = &saved;
  return fields;
}

void require_same_fields(const std::vector<OptimizerParamGroup>& groups,
                         const Algorithm& algorithm,
                         const FirstNames& names,
                         const OptimizerState& state) {
  auto saved = fields_by_first_name(state, names);
  Differences differences;
  for (const OptimizerParamGroup& group : groups) {
    for (const Tensor& parameter : group.params()) {
      const std::string& name = names.of(parameter);
      const auto fields = saved.find(name);
      if (fields != saved.end()) {
        algorithm.compare_fields(*fields->second, parameter, name, differences);
        saved.erase(fields);
      } else if (algorithm.first_state == FirstState::kInConstructor) {
        differences.push_back(name + " has no fields in the state");
      }
    }
  }
  for (const auto& [name, fields] : saved) {
    differences.push_back(name + " is not a parameter of the optimizer");
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

void require_loadable(const OptimizerOptions& defaults,
                      const std::vector<OptimizerParamGroup>& groups,
                      const NamedParameters& named_parameters,
                      const OptimizerState& state) {
  const Algorithm& algorithm = find_algorithm(defaults);
  const FirstNames names(named_parameters);
  require_same_form(groups, algorithm, names, state);
  require_same_fields(groups, algorithm, names, state);
}

void load_optimizer_state(torch::optim::Optimizer& optimizer,
                          const NamedParameters& named_parameters,
                          const OptimizerState& state) {
  auto& groups = optimizer.param_groups();
  require_loadable(optimizer.defaults(), groups, named_parameters, state);

  const Algorithm& algorithm = find_algorithm(optimizer.defaults());
  const FirstNames names(named_parameters);
  const auto saved = fields_by_first_name(state, names);
  std::remove_reference_t<decltype(optimizer.state())> loaded;
  for (const OptimizerParamGroup& group : groups) {
    for (const Tensor& parameter : group.params()) {
      const auto fields = saved.find(names.of(parameter));
      if (fields == saved.end()) continue;
      loaded[parameter.unsafeGetTensorImpl()] = algorithm.make_state(*fields->second, parameter);
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    algorithm.set_options(groups[i].options(), state.groups[i].options);
  }
  optimizer.state() = std::move(loaded);
}

}  // namespace peal::train
