// Lists of tensors for coalesced operations: each tensor once, one list for each type.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <torch/ordered_dict.h>
#include <torch/types.h>

namespace peal::train {

using NamedTensor = torch::OrderedDict<std::string, torch::Tensor>::Item;

inline const torch::Tensor& tensor_of(const torch::Tensor& tensor) { return tensor; }
inline const torch::Tensor& tensor_of(const NamedTensor& named) { return named.value(); }

/// The defined tensors, each once, with its first name: modules may share a parameter under several
/// names.
template <class AnyTensor = torch::Tensor>
std::vector<AnyTensor> distinct(const std::vector<AnyTensor>& tensors) {
  std::unordered_set<const c10::TensorImpl*> seen;
  std::vector<AnyTensor> once;
  for (const AnyTensor& any : tensors) {
    const torch::Tensor& tensor = tensor_of(any);
    if (tensor.defined() && seen.insert(tensor.unsafeGetTensorImpl()).second) once.push_back(any);
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
