#include "peal/train/nn/convert_sync_batch_norm.h"

#include <memory>
#include <string>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <torch/torch.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

using torch::nn::BatchNorm1dImpl;
using torch::nn::BatchNorm2dImpl;
using torch::nn::BatchNorm3dImpl;
using torch::nn::Module;
using torch::nn::SequentialImpl;
using SyncBatchNormPtr = std::shared_ptr<SyncBatchNormImpl>;

bool is_batch_norm(const Module& module) {
  return dynamic_cast<const BatchNorm1dImpl*>(&module) != nullptr ||
         dynamic_cast<const BatchNorm2dImpl*>(&module) != nullptr ||
         dynamic_cast<const BatchNorm3dImpl*>(&module) != nullptr;
}

/// Not a class of the program that derives from BatchNorm, because that may have another forward.
bool is_replaceable(const Module& module) {
  const std::type_info& type = typeid(module);
  return type == typeid(BatchNorm1dImpl) || type == typeid(BatchNorm2dImpl) ||
         type == typeid(BatchNorm3dImpl);
}

/// nullptr for other classes.
template <class BatchNorm>
SyncBatchNormPtr try_replacement(const Module& module, const ProcessGroupPtr& group) {
  if (typeid(module) != typeid(BatchNorm)) return nullptr;
  const auto& old = static_cast<const BatchNorm&>(module);
  const BatchNormTensors tensors = {
      old.weight, old.bias, old.running_mean, old.running_var, old.num_batches_tracked};
  auto norm = std::make_shared<SyncBatchNormImpl>(old.options, tensors, group);
  norm->train(old.is_training());
  return norm;
}

SyncBatchNormPtr replacement(const Module& module, const ProcessGroupPtr& group) {
  if (auto norm = try_replacement<BatchNorm1dImpl>(module, group)) return norm;
  if (auto norm = try_replacement<BatchNorm2dImpl>(module, group)) return norm;
  return try_replacement<BatchNorm3dImpl>(module, group);
}

/// A batch normalization in a Sequential.
struct Element {
  SequentialImpl* sequential;
  std::size_t index;
  std::string name;
  std::shared_ptr<Module> module;
};

struct BatchNorms {
  std::unordered_set<SyncBatchNormImpl*> synchronized;
  std::vector<Element> elements;
  std::vector<std::string> fixed;  // names of those that cannot be replaced
};

std::vector<Element> elements_of(SequentialImpl& sequential,
                                 const std::string& name,
                                 const std::shared_ptr<Module>& module) {
  std::vector<Element> elements;
  for (std::size_t i = 0; i < sequential.size(); ++i) {
    if (sequential.ptr(i) == module) elements.push_back({&sequential, i, name, module});
  }
  return elements;
}

void find(Module& parent, const std::string& path, BatchNorms& found) {
  auto* const sequential = dynamic_cast<SequentialImpl*>(&parent);
  for (const auto& child : parent.named_children()) {
    const std::shared_ptr<Module>& module = child.value();
    if (auto* const norm = dynamic_cast<SyncBatchNormImpl*>(module.get())) {
      found.synchronized.insert(norm);
    } else if (is_batch_norm(*module)) {
      std::vector<Element> elements;
      if (sequential && is_replaceable(*module)) {
        elements = elements_of(*sequential, child.key(), module);
      }
      if (elements.empty()) found.fixed.push_back(path + child.key());
      found.elements.insert(found.elements.end(), elements.begin(), elements.end());
    } else {
      find(*module, path + child.key() + ".", found);
    }
  }
}

BatchNorms batch_norms_of(Module& module) {
  BatchNorms found;
  if (auto* const norm = dynamic_cast<SyncBatchNormImpl*>(&module)) {
    found.synchronized.insert(norm);
  } else if (is_batch_norm(module)) {
    found.fixed.push_back("the module itself");
  } else {
    find(module, "", found);
  }
  return found;
}

}  // namespace

std::size_t convert_sync_batch_norm(torch::nn::Module& module,
                                    const ProcessGroupPtr& group,
                                    LossWeights weights) {
  const BatchNorms found = batch_norms_of(module);
  if (!found.fixed.empty()) {
    throw Error(ErrorKind::kUnsupported,
                c10::str("batch normalizations that are not elements of a Sequential cannot be "
                         "replaced: ",
                         c10::Join(", ", found.fixed),
                         "; declare them as peal::train::SyncBatchNorm"));
  }
  for (SyncBatchNormImpl* const norm : found.synchronized) {
    norm->set_group(group);
    norm->set_loss_weights(weights);
  }
  std::unordered_map<const Module*, SyncBatchNormPtr> replacements;
  for (const Element& element : found.elements) {
    SyncBatchNormPtr& norm = replacements[element.module.get()];
    if (!norm) {
      norm = replacement(*element.module, group);
      norm->set_loss_weights(weights);
    }
    auto place = element.sequential->begin() + static_cast<std::ptrdiff_t>(element.index);
    *place = torch::nn::AnyModule(norm);
    element.sequential->replace_module(element.name, norm);
  }
  return found.synchronized.size() + replacements.size();
}

}  // namespace peal::train
