// Tells when a backward pass has ended, also if it contains other backward passes.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "peal/train/ddp/gradient_hook.h"

namespace peal::train {

/// The number of the running backward pass, different for each pass and for each pass nested in it;
/// -1 outside of backward.
int current_backward();

/// Waits for the end of the outermost running backward pass. A node of a graph may run another
/// backward pass (checkpointing does so), whose end is then not the end of the outer pass. Autograd
/// does not tell which pass contains another. But while a nested pass ends, the outer node is
/// running, so this class then waits in the node after it.
/// Threads: the thread that runs backward.
class BackwardEnd final {
 public:
  /// Calls `call` once, when the outermost pass ends and before backward() returns. An exception of
  /// `call` leaves backward(). Call it inside a pass. A wait that has not ended is given up.
  void wait(std::function<void()> call);
  /// Whether a pass within the outermost one has ended since `wait`.
  bool seen_nested() const { return seen_nested_; }
  /// Whether the pass may still end: false after an exception has ended it, or after its end.
  bool is_waiting() const;
  BackwardEnd() = default;
  ~BackwardEnd();
  BackwardEnd(const BackwardEnd&) = delete;
  BackwardEnd& operator=(const BackwardEnd&) = delete;

 private:
  struct Wait;

  static void queue(const std::shared_ptr<Wait>& wait);
  static void at_end(const std::shared_ptr<Wait>& wait);
  void remove_hooks();

  std::weak_ptr<Wait> wait_;  // owned by autograd's queue of callbacks, or by one of hooks_
  bool seen_nested_ = false;
  std::vector<std::pair<NodePtr, std::uintptr_t>> hooks_;
};

}  // namespace peal::train
