// torch's Work over peal's.
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

/// What an operation is to torch.
struct Kind {
  c10d::OpType type = c10d::OpType::UNKNOWN;
  const char* title = "peal:unknown";  // in profiles
};

/// What torch's work.result() and its future give: a list of tensors or, where there are several,
/// a list of such lists.
using Results = std::vector<std::vector<at::Tensor>>;

/// What start(0), start(1), ... start in the group, as one Work, which ends when all have. Errors:
/// of `start`, once those before it have ended: they use the same tensors. A signal that comes
/// meanwhile ends the group (common/signals.h).
WorkPtr start_all(ProcessGroup& group,
                  std::size_t number,
                  const std::function<WorkPtr(std::size_t)>& start);

/// What endCoalescing gives for the operations since startCoalescing.
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

/// Threads: any. When it is dropped before the operation has ended, the tensors live on until then.
class TorchWork final : public c10d::Work {
 public:
  TorchWork(int rank,
            const Kind& kind,
            const std::optional<std::vector<at::Tensor>>& inputs,
            WorkPtr work,
            Operands operands,
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
  /// Errors: what the operation ended with; Error(timeout) if it has not ended within `timeout`,
  /// after which it goes on. Zero: its own timeout. Signals interrupt it (common/signals.h).
  bool wait(std::chrono::milliseconds timeout) override;
  /// Completed when the operation has ended, on the thread that ends it. Holds the results.
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
  std::uint64_t getSequencenumber() const override;

 private:
  struct State;

  std::shared_ptr<State> state_;
  std::uint64_t sequence_;
};

}  // namespace peal::python
