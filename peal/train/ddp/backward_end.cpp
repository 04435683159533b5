#include "peal/train/ddp/backward_end.h"

#include <cstddef>
#include <memory>
#include <utility>

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/torch.h>

#include "peal/system/recycled.h"

namespace peal::train {

struct BackwardEnd::Wait {
  BackwardEnd* owner;  // null after the wait has ended or was given up
};

/// Owned by the queue of callbacks of one pass. If the pass was nested, the wait goes on in the
/// pass that contains it. If an exception has ended the outermost pass, the wait ends.
struct BackwardEnd::Queued {
  struct Callback;

  explicit Queued(std::shared_ptr<Wait> of) : wait(std::move(of)) {}
  ~Queued() {
    if (wait->owner == nullptr || current_backward() == -1) return;
    wait->owner->seen_nested_ = true;
    queue(wait);
  }
  Queued(const Queued&) = delete;
  Queued& operator=(const Queued&) = delete;

  std::shared_ptr<Wait> wait;
};

/// What autograd's queue holds. Its std::function makes it with the operator new of this class, so
/// that a pass takes over the memory of an earlier one.
struct BackwardEnd::Queued::Callback {
  void operator()() const {
    if (BackwardEnd* const owner = queued->wait->owner) owner->at_end_of_a_pass();
  }
  static void* operator new(std::size_t) { return RecycledBlocks<Callback>::take(); }
  static void operator delete(void* block) { RecycledBlocks<Callback>::put_back(block); }

  std::shared_ptr<Queued> queued;
};

int current_backward() { return torch::autograd::get_current_graph_task_id(); }

BackwardEnd::BackwardEnd(std::function<void()> call) : call_(std::move(call)) {}

BackwardEnd::~BackwardEnd() { give_up(); }

void BackwardEnd::wait() {
  give_up();
  seen_nested_ = false;
  const auto wait = std::allocate_shared<Wait>(RecyclingAllocator<Wait>(), Wait{this});
  wait_ = wait;
  queue(wait);
}

void BackwardEnd::give_up() {
  if (const std::shared_ptr<Wait> wait = wait_.lock()) wait->owner = nullptr;
  wait_.reset();
}

void BackwardEnd::queue(const std::shared_ptr<Wait>& wait) {
  torch::autograd::Engine::get_default_engine().queue_callback(
      Queued::Callback{std::allocate_shared<Queued>(RecyclingAllocator<Queued>(), wait)});
}

// At the end of the outermost pass no node is running. At the end of a nested pass the outer node
// is running.
void BackwardEnd::at_end_of_a_pass() {
  if (torch::autograd::get_current_node() != nullptr) return;
  give_up();
  call_();
}

}  // namespace peal::train
