#include "python/c10d/work.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <utility>

#include "peal/base/clock.h"
#include "peal/base/error.h"

#include "python/common/gil.h"
#include "python/common/signals.h"
#include "python/common/waiting.h"

namespace peal::python {
namespace {

class JoinedWork final : public peal::Work {
 public:
  explicit JoinedWork(std::vector<WorkPtr> works) : works_(std::move(works)) {}

  void wait(Timeout timeout) override {
    const Deadline deadline =
        timeout == kGroupTimeout ? Deadline(TimePoint::max()) : Deadline::after(timeout);
    for (const WorkPtr& work : works_) {
      work->wait(timeout == kGroupTimeout ? kGroupTimeout : deadline.left());
    }
  }

  bool is_completed() const override {
    return std::all_of(
        works_.begin(), works_.end(), [](const auto& w) { return w->is_completed(); });
  }

  void when_completed(std::function<void()> then) override {
    if (works_.empty()) return then();
    const auto left = std::make_shared<std::atomic<std::size_t>>(works_.size());
    for (const WorkPtr& work : works_) {
      work->when_completed([left, then] {
        if (left->fetch_sub(1) == 1) then();
      });
    }
  }

  std::exception_ptr exception() const override {
    for (const WorkPtr& work : works_) {
      if (auto failure = work->exception()) return failure;
    }
    return nullptr;
  }

  Rank source() const override { return works_.empty() ? kAnySource : works_.front()->source(); }

 private:
  std::vector<WorkPtr> works_;
};

c10::IValue value_of(const Results& results) {
  if (results.size() > 1) return c10::IValue(results);
  return results.empty() ? c10::IValue(std::vector<at::Tensor>()) : c10::IValue(results.front());
}

c10::TypePtr type_of(const Results& results) {
  return results.size() > 1 ? c10::ListType::create(c10::ListType::ofTensors())
                            : c10::TypePtr(c10::ListType::ofTensors());
}

}  // namespace

CoalescedWork::CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : c10d::Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

bool CoalescedWork::isCompleted() {
  return std::all_of(works_.begin(), works_.end(), [](const auto& w) { return w->isCompleted(); });
}

bool CoalescedWork::isSuccess() const {
  return std::all_of(works_.begin(), works_.end(), [](const auto& w) { return w->isSuccess(); });
}

std::exception_ptr CoalescedWork::exception() const {
  for (const auto& work : works_) {
    if (auto failure = work->exception()) return failure;
  }
  return nullptr;
}

bool CoalescedWork::wait(std::chrono::milliseconds timeout) {
  for (const auto& work : works_) work->wait(timeout);
  return true;
}

WorkPtr start_all(ProcessGroup& group,
                  std::size_t number,
                  const std::function<WorkPtr(std::size_t)>& start) {
  std::vector<WorkPtr> works;
  try {
    for (std::size_t k = 0; k < number; ++k) works.push_back(start(k));
  } catch (const std::exception&) {
    for (const WorkPtr& work : works) wait_until_ended(group, *work);
    throw;
  }

  if (works.size() == 1) return std::move(works.front());
  return std::make_shared<JoinedWork>(std::move(works));
}

/// Lives until the operation has ended, even if the Work is released earlier.
struct TorchWork::State {
  State(WorkPtr w, TensorOperands o, Results r)
      : work(std::move(w)), operands(std::move(o)), results(std::move(r)) {}

  /// Whether the operation has ended. If it has, this call first ends the record of the operation
  /// in a profile, because the caller may then stop the profile, which frees memory that the record
  /// uses.
  bool completed() {
    if (!work->is_completed()) return false;
    end_record();
    return true;
  }

  /// Call this after the end of the operation. If another thread is ending the record, this call
  /// waits for that thread, without the GIL: the thread needs the GIL if Python hooks are active
  /// (saved_tensors_hooks).
  void end_record() {
    if (!is_profiled) return;
    const WithoutGil without_gil;
    std::call_once(record_ended, [this] {
      try {
        std::exchange(end_profile_record, nullptr)();
      } catch (const std::exception&) {  // the operation has ended all the same
      }
    });
  }

  /// Completes the results, if the operation has succeeded. Call after the end of the operation.
  void settle() {
    std::call_once(settled, [this] {
      if (work->exception() == nullptr) operands.finish();
    });
  }

  /// As settle, for a released Work: ignores errors.
  void settle_quietly() noexcept {
    try {
      settle();
    } catch (const std::exception&) {
    }
  }

  /// Completes the future. Runs on a backend thread.
  void settle_future() noexcept {
    try {
      end_record();
      settle();
      if (const auto failure = work->exception()) return future->setError(failure);
      future->markCompleted(value_of(results));
    } catch (const std::exception&) {
      future->setErrorIfNeeded(std::current_exception());
    }
  }

  WorkPtr work;
  TensorOperands operands;
  Results results;
  bool is_profiled = false;
  std::function<void()> end_profile_record;
  std::once_flag record_ended;
  std::once_flag settled;
  std::mutex asking;  // guards `future`
  c10::intrusive_ptr<c10::ivalue::Future> future;
};

TorchWork::TorchWork(int rank,
                     const Kind& kind,
                     const std::optional<std::vector<at::Tensor>>& inputs,
                     WorkPtr work,
                     TensorOperands operands,
                     Results results,
                     std::uint64_t sequence)
    : c10d::Work(rank, kind.type, kind.title, inputs),
      state_(std::make_shared<State>(std::move(work), std::move(operands), std::move(results))),
      sequence_(sequence) {
  if (recordFunctionEndCallback_) {
    state_->is_profiled = true;
    state_->end_profile_record = std::exchange(recordFunctionEndCallback_, nullptr);
    keep_until_completed(*state_->work, [state = state_] { state->end_record(); });
  }
}

TorchWork::~TorchWork() {
  if (state_->completed()) {
    state_->settle_quietly();
  } else {
    keep_until_completed(*state_->work, [state = state_] { state->settle_quietly(); });
  }
}

// Settles first, because the caller may use the results after `true`.
bool TorchWork::isCompleted() {
  if (!state_->completed()) return false;
  state_->settle();
  return true;
}

bool TorchWork::isSuccess() const {
  if (!state_->completed() || state_->work->exception() != nullptr) return false;
  state_->settle();
  return true;
}

std::exception_ptr TorchWork::exception() const {
  return state_->completed() ? state_->work->exception() : nullptr;
}

int TorchWork::sourceRank() const { return state_->work->source(); }

std::vector<at::Tensor> TorchWork::result() {
  TORCH_CHECK(isCompleted(),
              "Work needs to be completed before calling result(). "
              "Should call wait() before result().");
  TORCH_CHECK(state_->results.size() <= 1,
              "work result does not support list of lists, use .getFuture() and value()");
  state_->settle();
  return state_->results.empty() ? std::vector<at::Tensor>() : state_->results.front();
}

void TorchWork::synchronize() { wait(kNoTimeout); }

bool TorchWork::wait(std::chrono::milliseconds timeout) {
  try {
    interruptible(
        [&] { wait_for(*state_->work, timeout == kNoTimeout ? kGroupTimeout : timeout); });
  } catch (...) {
    state_->completed();
    throw;
  }
  state_->completed();
  state_->settle();
  return true;
}

c10::intrusive_ptr<c10::ivalue::Future> TorchWork::getFuture() {
  {
    const std::lock_guard lock(state_->asking);
    if (state_->future) return state_->future;
    state_->future = c10::make_intrusive<c10::ivalue::Future>(type_of(state_->results));
  }
  try {
    when_completed(*state_->work, [state = state_] { state->settle_future(); });
  } catch (const std::exception&) {
    c10::intrusive_ptr<c10::ivalue::Future> failed;
    {
      const std::lock_guard lock(state_->asking);
      failed = std::exchange(state_->future, nullptr);  // the next call tries again
    }
    failed->setErrorIfNeeded(std::current_exception());  // runs callbacks, which may ask too
    throw;
  }
  return state_->future;
}

std::uint64_t TorchWork::getSequencenumber() const { return sequence_; }

}  // namespace peal::python
