#include "peal/train/optim/state_differences.h"

#include <set>

#include "peal/base/error.h"

namespace peal::train {

void compare_group_counts(std::size_t ours, std::size_t saved, Differences& differences) {
  if (ours == saved) return;
  differences.push_back(
      c10::str("the state has ", saved, " groups of parameters, but the optimizer has ", ours));
}

void compare_parameters(const torch::optim::OptimizerParamGroup& ours,
                        const OptimizerState::Group& saved,
                        const FirstNames& names,
                        std::size_t number,
                        Differences& differences) {
  std::set<std::string> unexpected;
  for (const std::string& name : saved.parameters) unexpected.insert(names.first_of(name));
  for (const torch::Tensor& parameter : ours.params()) {
    const std::string& name = names.of(parameter);
    if (unexpected.erase(name) > 0) continue;
    differences.push_back(c10::str("group ", number, ": ", name, " is missing from the state"));
  }
  for (const std::string& name : unexpected) {
    differences.push_back(
        c10::str("group ", number, ": ", name, " is in the state, but not in the optimizer"));
  }
}

void compare_forms(const std::string& name,
                   const torch::Tensor& saved,
                   const torch::Tensor& parameter,
                   Differences& differences) {
  if (saved.sizes() == parameter.sizes() && saved.scalar_type() == parameter.scalar_type()) return;
  differences.push_back(c10::str(name,
                                 " is ",
                                 saved.scalar_type(),
                                 " of shape ",
                                 saved.sizes(),
                                 " in the state, but the parameter is ",
                                 parameter.scalar_type(),
                                 " of shape ",
                                 parameter.sizes()));
}

void require_none(const Differences& differences) {
  if (differences.empty()) return;
  std::string text = "the saved state does not fit the optimizer:";
  for (const std::string& difference : differences) text += "\n  " + difference;
  throw Error(ErrorKind::kUsage, text);
}

}  // namespace peal::train
