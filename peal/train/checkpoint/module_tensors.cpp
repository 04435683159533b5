#include "peal/train/checkpoint/module_tensors.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using Infos = std::map<std::string, StoredTensors::Info>;

std::string describe(torch::ScalarType type, torch::IntArrayRef shape) {
  return c10::str(type, " of shape ", shape);
}

/// A line for each of the first differences, and the number of the others.
std::string first_lines(const std::vector<std::string>& differences) {
  constexpr std::size_t kMost = 8;
  const std::size_t shown = std::min(differences.size(), kMost);
  std::string lines;
  for (std::size_t i = 0; i < shown; ++i) lines += "\n  " + differences[i];
  if (shown < differences.size()) {
    lines += "\n  and " + std::to_string(differences.size() - shown) + " more";
  }
  return lines;
}

/// Throws unless the module has exactly these tensors. `source` is for the error.
void require_same(const TensorMap& ours, const Infos& saved, const std::string& source) {
  std::vector<std::string> differences;
  for (const auto& [name, tensor] : ours) {
    const auto found = saved.find(name);
    if (found == saved.end()) {
      differences.push_back(name + " is missing");
    } else if (found->second.type != tensor.scalar_type() ||
               tensor.sizes() != found->second.shape) {
      differences.push_back(name + " is " + describe(found->second.type, found->second.shape) +
                            ", but in the module " +
                            describe(tensor.scalar_type(), tensor.sizes()));
    }
  }
  for (const auto& [name, info] : saved) {
    if (!ours.contains(name)) differences.push_back(name + " is not in the module");
  }
  if (differences.empty()) return;
  throw Error(ErrorKind::kUsage, source + " do not fit the module:" + first_lines(differences));
}

}  // namespace

TensorMap module_tensors(const torch::nn::Module& module) {
  TensorMap tensors;
  for (const auto& list : {module.named_parameters(), module.named_buffers()}) {
    for (const auto& item : list) {
      if (item.value().defined()) tensors[item.key()] = item.value();
    }
  }
  return tensors;
}

void load_module(torch::nn::Module& module, const TensorMap& tensors) {
  Infos infos;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) continue;
    infos[name] = {.type = tensor.scalar_type(), .shape = tensor.sizes().vec()};
  }
  const TensorMap ours = module_tensors(module);
  require_same(ours, infos, "the tensors");
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : ours) torch::Tensor(tensor).copy_(tensors.at(name));
}

void load_module(torch::nn::Module& module, const StoredTensors& tensors) {
  const TensorMap ours = module_tensors(module);
  require_same(ours, tensors.tensors(), "the tensors of " + tensors.path().string());
  const torch::NoGradGuard no_grad;
  for (const auto& [name, tensor] : ours) torch::Tensor(tensor).copy_(tensors.read(name));
}

}  // namespace peal::train
