#include "peal/train/gradient_hook.h"

#include <memory>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/torch.h>

namespace peal::train {
namespace {

using torch::autograd::variable_list;

class PostHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit PostHook(std::function<void()> call) : call_(std::move(call)) {}

  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    call_();
    return outputs;
  }

 private:
  std::function<void()> call_;
};

}  // namespace

GradientHook::GradientHook(const torch::Tensor& parameter, std::function<void()> call)
    : accumulator_(torch::autograd::impl::grad_accumulator(parameter)),
      key_(accumulator_->add_post_hook(std::make_unique<PostHook>(std::move(call)))) {}

GradientHook::~GradientHook() { accumulator_->del_post_hook(key_); }

int current_backward() { return torch::autograd::get_current_graph_task_id(); }

void at_end_of_backward(std::function<void()> call) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(call));
}

}  // namespace peal::train
