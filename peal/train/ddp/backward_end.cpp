#include "peal/train/ddp/backward_end.h"

#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/torch.h>

namespace peal::train {

struct BackwardEnd::Wait {
  BackwardEnd* owner;  // null after the wait was given up
  std::function<void()> call;
};

int current_backward() { return torch::autograd::get_current_graph_task_id(); }

BackwardEnd::~BackwardEnd() {
  if (const std::shared_ptr<Wait> wait = wait_.lock()) wait->owner = nullptr;
  remove_hooks();
}

// Does not remove hooks of an earlier wait: the node that runs now may own one of them. They do
// nothing.
void BackwardEnd::wait(std::function<void()> call) {
  if (const std::shared_ptr<Wait> earlier = wait_.lock()) earlier->owner = nullptr;
  seen_nested_ = false;
  const auto wait = std::make_shared<Wait>(Wait{this, std::move(call)});
  wait_ = wait;
  queue(wait);
}

bool BackwardEnd::is_waiting() const { return !wait_.expired(); }

void BackwardEnd::queue(const std::shared_ptr<Wait>& wait) {
  torch::autograd::Engine::get_default_engine().queue_callback([wait] { at_end(wait); });
}

// At the end of the outermost pass no node is running. At the end of a nested pass the outer node
// is running.
void BackwardEnd::at_end(const std::shared_ptr<Wait>& wait) {
  BackwardEnd* const self = wait->owner;
  if (self == nullptr) return;
  const NodePtr outer = torch::autograd::get_current_node();
  if (outer == nullptr) {
    self->wait_.reset();
    self->remove_hooks();
    wait->call();
    return;
  }
  self->seen_nested_ = true;
  for (const torch::autograd::Edge& edge : outer->next_edges()) {
    if (!edge.is_valid()) continue;
    // The hook remains until the wait ends, but acts only once: its first call empties `once`.
    const auto go_on = [once = wait](const torch::Tensor& gradient) mutable {
      if (const auto first = std::exchange(once, nullptr)) queue(first);
      return gradient;
    };
    self->hooks_.emplace_back(edge.function, add_hook_before(edge.function, go_on));
    return;
  }
}

void BackwardEnd::remove_hooks() {
  for (const auto& [node, key] : hooks_) remove_hook_before(node, key);
  hooks_.clear();
}

}  // namespace peal::train
