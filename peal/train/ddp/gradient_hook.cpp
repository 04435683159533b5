#include "peal/train/ddp/gradient_hook.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>
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

/// Runs just before the accumulator, and moves the other hooks to it. autograd::grad() calls this
/// too, but runs neither an accumulator nor its hooks.
class GradientHook::OfTensor final : public torch::autograd::FunctionPreHook {
 public:
  explicit OfTensor(GradientHook& owner) : owner_(owner) {}
  ~OfTensor() override { owner_.of_tensor_ = nullptr; }
  OfTensor(const OfTensor&) = delete;
  OfTensor& operator=(const OfTensor&) = delete;

  variable_list operator()(const variable_list& gradients) override {
    NodePtr running = torch::autograd::get_current_node();
    if (dynamic_cast<torch::autograd::AccumulateGrad*>(running.get()) != nullptr) {
      owner_.follow(std::move(running));
    }
    return gradients;
  }

 private:
  GradientHook& owner_;
};

GradientHook::GradientHook(torch::Tensor parameter, GradientCalls calls)
    : parameter_(std::move(parameter)), calls_(std::move(calls)) {
  NodePtr accumulator = torch::autograd::impl::grad_accumulator(parameter_);  // throws if no leaf
  renew();
  follow(std::move(accumulator));
}

GradientHook::~GradientHook() {
  if (of_tensor_ != nullptr) {
    std::erase_if(torch::autograd::impl::hooks(parameter_),
                  [this](const auto& hook) { return hook.get() == of_tensor_; });
  }
  leave();
}

void GradientHook::renew() {
  if (of_tensor_ != nullptr || !parameter_.requires_grad()) return;
  auto hook = std::make_unique<OfTensor>(*this);
  OfTensor* const added = hook.get();
  torch::autograd::impl::hooks(parameter_).push_back(std::move(hook));
  of_tensor_ = added;
}

void GradientHook::follow(NodePtr accumulator) {
  if (accumulator == accumulator_) return;
  leave();
  accumulator_ = std::move(accumulator);
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
