#include "peal/train/ddp/gradient_hook.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/torch.h>

namespace peal::train {
namespace {

using torch::autograd::variable_list;

class PreHook final : public torch::autograd::FunctionPreHook {
 public:
  explicit PreHook(std::function<torch::Tensor(const torch::Tensor&)> call)
      : call_(std::move(call)) {}

  variable_list operator()(const variable_list& gradients) override {
    torch::Tensor first = call_(gradients.front());  // before a copy counts as a user of it
    variable_list result = gradients;
    result.front() = std::move(first);
    return result;
  }

 private:
  std::function<torch::Tensor(const torch::Tensor&)> call_;
};

class PostHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit PostHook(const std::function<void()>& call) : call_(call) {}

  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    call_();
    return outputs;
  }

 private:
  const std::function<void()>& call_;
};

/// Adds a hook that runs just before the node, and returns its key.
std::uintptr_t add_hook_before(const NodePtr& node,
                               std::function<torch::Tensor(const torch::Tensor&)> call) {
  node->add_pre_hook(std::make_unique<PreHook>(std::move(call)));
  return reinterpret_cast<std::uintptr_t>(node->pre_hooks().back().get());
}

void remove_hook_before(const NodePtr& node, std::uintptr_t key) {
  std::erase_if(node->pre_hooks(), [&](const auto& hook) {
    return reinterpret_cast<std::uintptr_t>(hook.get()) == key;
  });
}

}  // namespace

GradientHook::GradientHook(torch::Tensor parameter, GradientCalls calls)
    : parameter_(std::move(parameter)),
      calls_(std::move(calls)),
      tensor_key_(parameter_.register_hook([this](const torch::Tensor&) { follow(); })) {}

GradientHook::~GradientHook() {
  parameter_.remove_hook(tensor_key_);
  leave();
}

/// Runs just before the accumulator, and moves the hooks to it. autograd::grad() calls this
/// function too, but runs neither an accumulator nor its hooks.
void GradientHook::follow() {
  NodePtr running = torch::autograd::get_current_node();
  if (running == accumulator_) return;
  if (dynamic_cast<torch::autograd::AccumulateGrad*>(running.get()) == nullptr) return;
  leave();
  accumulator_ = std::move(running);
  before_key_ = add_hook_before(
      accumulator_, [this](const torch::Tensor& gradient) { return calls_.computed(gradient); });
  after_key_ = accumulator_->add_post_hook(std::make_unique<PostHook>(calls_.accumulated));
}

void GradientHook::leave() {
  if (accumulator_ == nullptr) return;
  remove_hook_before(accumulator_, before_key_);
  accumulator_->del_post_hook(after_key_);
}

}  // namespace peal::train
