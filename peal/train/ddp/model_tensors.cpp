#include "peal/train/ddp/model_tensors.h"

#include <algorithm>
#include <utility>

#include <torch/torch.h>

namespace peal::train {
namespace {

// LibTorch returns the children and parameters of a module only as copies, which cost allocations
// in each pass. An explicit instantiation may name private members, so it can give access to them.
using Children = torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>>;
using Parameters = torch::OrderedDict<std::string, torch::Tensor>;
const Children& children_of(const torch::nn::Module& module);
const Parameters& parameters_of(const torch::nn::Module& module);

template <Children torch::nn::Module::*kChildren, Parameters torch::nn::Module::*kParameters>
struct Reveal {
  friend const Children& children_of(const torch::nn::Module& module) { return module.*kChildren; }
  friend const Parameters& parameters_of(const torch::nn::Module& module) {
    return module.*kParameters;
  }
};
template struct Reveal<&torch::nn::Module::children_, &torch::nn::Module::parameters_>;

class TensorsOfModule final : public ModelTensors {
 public:
  TensorsOfModule(std::shared_ptr<const torch::nn::Module> module, std::vector<std::string> ignored)
      : module_(std::move(module)), ignored_(std::move(ignored)) {}

  std::vector<NamedTensor> parameters() const override {
    return without_ignored(module_->named_parameters());
  }

  std::vector<NamedTensor> buffers() const override {
    return without_ignored(module_->named_buffers());
  }

  void visit_parameters(c10::function_ref<void(const torch::Tensor&)> visit) const override {
    if (ignored_.empty()) return visit_below(*module_, visit);
    for (const NamedTensor& parameter : parameters()) visit(parameter.value());
  }

 private:
  static void visit_below(const torch::nn::Module& module,
                          c10::function_ref<void(const torch::Tensor&)> visit) {
    for (const auto& item : parameters_of(module)) {
      if (item.value().defined()) visit(item.value());
    }
    for (const auto& item : children_of(module)) visit_below(*item.value(), visit);
  }

  std::vector<NamedTensor> without_ignored(
      const torch::OrderedDict<std::string, torch::Tensor>& all) const {
    std::vector<NamedTensor> kept;
    for (const NamedTensor& item : all) {
      if (std::ranges::find(ignored_, item.key()) == ignored_.end()) kept.push_back(item);
    }
    return kept;
  }

  std::shared_ptr<const torch::nn::Module> module_;
  std::vector<std::string> ignored_;
};

}  // namespace

std::unique_ptr<ModelTensors> tensors_of(std::shared_ptr<const torch::nn::Module> module,
                                         std::vector<std::string> ignored) {
  return std::make_unique<TensorsOfModule>(std::move(module), std::move(ignored));
}

}  // namespace peal::train
