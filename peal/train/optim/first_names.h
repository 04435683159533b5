// The names of parameters, as the state of an optimizer has them. Used in this folder.
#pragma once

#include <string>
#include <unordered_map>

#include <torch/types.h>

#include "peal/base/error.h"
#include "peal/train/optim/optimizer_state.h"

namespace peal::train {

/// A parameter with several names has its first name. Borrows `named`.
class FirstNames final {
 public:
  explicit FirstNames(const NamedParameters& named) : named_(named) {
    for (const auto& item : named) names_.emplace(item.value().unsafeGetTensorImpl(), item.key());
  }

  /// Errors: usage (the parameter has no name).
  const std::string& of(const torch::Tensor& parameter) const {
    const auto found = names_.find(parameter.unsafeGetTensorImpl());
    if (found != names_.end()) return found->second;
    throw Error(ErrorKind::kUsage,
                c10::str("the optimizer has a parameter of shape ",
                         parameter.sizes(),
                         " that is not among the named parameters: register it in the module, and "
                         "pass the module that the optimizer trains"));
  }

  /// The first name of the parameter that is called `name`; `name` itself if it is unknown.
  const std::string& first_of(const std::string& name) const {
    const torch::Tensor* const parameter = named_.find(name);
    return parameter != nullptr ? of(*parameter) : name;
  }

 private:
  const NamedParameters& named_;
  std::unordered_map<const c10::TensorImpl*, std::string> names_;
};

}  // namespace peal::train
