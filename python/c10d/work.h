// torch's Work on top of peal's Work.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "peal/group/process_group.h"
#include "peal/group/work.h"

#include "python/c10d/operands.h"

namespace peal::python {

/// The type and title of an operation in torch.
struct Kind {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = "peal:unknown";  // in profiles
};

/// The value of work.result() and of the future: a list of tensors, or several such lists.
using Results = std::vector<std::vector<at::Tensor>>;

/// Calls start(0), start(1), ... and joins the operations in one Work, which ends after all of
/// them.
/// Errors: those of `start`. The call first waits until the earlier operations have ended, because
///   they use the same tensors. A signal meanwhile ends the group (common/signals.h).
WorkPtr start_all(ProcessGroup& group,
                  std::size_t number,
                  const std::function<WorkPtr(std::size_t)>& start);

/// The Work that endCoalescing returns, for the operations since startCoalescing.
class CoalescedWork final : public c10d::Work {
 public:
  CoalescedWork(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  bool wait(std::chrono::milliseconds timeout) override;

 private:
  std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

/// The tensors live until the operation has ended, even if the Work is released earlier.
/// Threads: any.
class TorchWork final : public c10d::Work {
 public:
  TorchWork(int rank,
            const Kind& kind,
            const std::optional<std::vector<at::Tensor>>& inputs,
            WorkPtr work,
            TensorOperands operands,
            Results results,
            std::uint64_t sequence);
  ~TorchWork() override;
  TorchWork(const TorchWork&) = delete;
  TorchWork& operator=(const TorchWork&) = delete;

  bool isCompleted() override;
  bool isSuccess() const override;
  std::exception_ptr exception() const override;
  int sourceRank() const override;
  std::vector<at::Tensor> result() override;
  void synchronize() override;
  /// Zero: wait until the operation's timeout ends it. Signals interrupt the wait
  /// (common/signals.h).
  /// Errors: the operation's error; Error(timeout) if the operation has not ended within `timeout`.
  ///   The operation then continues.
  bool wait(std::chrono::milliseconds timeout) override;
  /// A future of the results. The thread that ends the operation completes the future.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override;

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::uint64_t sequence_;
};

}  // namespace peal::python
