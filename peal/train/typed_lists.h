// Lists of tensors for coalesced operations: each tensor once, one list for each type.
#pragma once

#include <algorithm>
#include <map>
#include <unordered_set>
#include <vector>

#include <torch/types.h>

namespace peal::train {

/// The defined tensors, each once: modules may share a parameter under several names.
inline std::vector<torch::Tensor> distinct(const std::vector<torch::Tensor>& tensors) {
  std::unordered_set<const c10::TensorImpl*> seen;
  std::vector<torch::Tensor> once;
  for (const torch::Tensor& tensor : tensors) {
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second)
      once.push_back(tensor);
  }
  return once;
}

/// One list for each type, in the order of the types' numbers, which is the same on every rank.
inline std::vector<std::vector<torch::Tensor>> by_type(const std::vector<torch::Tensor>& tensors) {
  std::map<torch::ScalarType, std::vector<torch::Tensor>> lists;
  for (const torch::Tensor& tensor : tensors) lists[tensor.scalar_type()].push_back(tensor);
  std::vector<std::vector<torch::Tensor>> result;
  for (auto& [type, list] : lists) result.push_back(std::move(list));
  return result;
}

}  // namespace peal::train
