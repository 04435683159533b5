// Tells when a backward pass has ended, also if it contains other backward passes.
#pragma once

#include <functional>
#include <memory>

namespace peal::train {

/// The number of the running backward pass, different for each pass and for each pass nested in it;
/// -1 outside of backward.
/// Threads: the answer is for the calling thread.
int current_backward();

/// Waits for the end of the outermost running backward pass. A node of a graph may run another
/// backward pass (checkpointing does so), whose end is then not the end of the outer pass.
///
/// Autograd does not tell which pass contains another, and has one queue of callbacks for each
/// pass. So this class puts an object into the queue of the running pass. When a nested pass has
/// ended, or has failed, autograd destroys its queue. At that moment the outer pass is the running
/// one again, and the destructor of the object puts the next object into its queue.
/// Threads: the thread that runs backward. Autograd moves a pass that is nested more than 60 deep
///   to another thread; this class then takes the end of that pass for the end of the outermost.
class BackwardEnd final {
 public:
  /// `call` is called at the end of each wait, before backward() returns. An exception of `call`
  /// leaves backward().
  explicit BackwardEnd(std::function<void()> call);
  /// Gives up a wait.
  ~BackwardEnd();
  BackwardEnd(const BackwardEnd&) = delete;
  BackwardEnd& operator=(const BackwardEnd&) = delete;

  /// Waits for the end of the outermost pass. Call it inside a pass. Gives up an earlier wait.
  void wait();
  /// Whether a pass inside the outermost one has ended, or has failed, since `wait`.
  bool seen_nested() const { return seen_nested_; }
  /// Whether the pass may still end: false after an exception has ended it, and after its end.
  bool is_waiting() const { return !wait_.expired(); }

 private:
  struct Wait;
  struct Queued;

  static void queue(const std::shared_ptr<Wait>& wait);
  void give_up();
  void at_end_of_a_pass();

  std::function<void()> call_;
  std::weak_ptr<Wait> wait_;  // owned by autograd's queue of callbacks
  bool seen_nested_ = false;
};

}  // namespace peal::train
