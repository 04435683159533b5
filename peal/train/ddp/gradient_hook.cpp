#include "peal/train/ddp/gradient_hook.h"

#include <memory>
#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/torch.h>

namespace peal::train {
namespace {

using torch::autograd::variable_list;

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

}  // namespace

GradientHook::GradientHook(torch::Tensor parameter, std::function<void()> call)
    : parameter_(std::move(parameter)),
      call_(std::move(call)),
      tensor_key_(parameter_.register_hook([this](const torch::Tensor&) { follow(); })) {}

GradientHook::~GradientHook() {
  parameter_.remove_hook(tensor_key_);
  leave();
}

/// Runs just before the accumulator, and moves the hook to it. autograd::grad() calls this function
/// too, but runs neither an accumulator nor its hook.
void GradientHook::follow() {
  Accumulator running = torch::autograd::get_current_node();
  if (running == accumulator_) return;
  if (dynamic_cast<torch::autograd::AccumulateGrad*>(running.get()) == nullptr) return;
  leave();
  accumulator_ = std::move(running);
  accumulator_key_ = accumulator_->add_post_hook(std::make_unique<PostHook>(call_));
}

void GradientHook::leave() {
  if (accumulator_ != nullptr) accumulator_->del_post_hook(accumulator_key_);
}

int current_backward() { return torch::autograd::get_current_graph_task_id(); }

void at_end_of_backward(std::function<void()> call) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(call));
}

}  // namespace peal::train
