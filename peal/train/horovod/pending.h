// Operations that have started, the tensors that they work on, and their results. Used in this
// folder and by the module for Python.
#pragma once

#include <c10/util/SmallVector.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "peal/named/named_operations.h"
#include "peal/train/horovod/handle.h"
#include "peal/train/horovod/process_set_state.h"

namespace peal::hvd {

/// One call: an operation for each of its tensors.
/// Threads: one at a time.
class Pending final : public InFlight {
 public:
  /// The operation of one tensor.
  struct Part {
    named::OperationPtr operation = nullptr;
    Tensor input = {};   // the memory that the operation reads, if it is not `dense`
    Tensor dense = {};   // the memory of the result: dense, on the CPU
    Tensor target = {};  // in place: the caller's tensor
    Tensor like = {};    // gives device and strides of the result; undefined if `dense` has them
    /// All-gather and all-to-all: the rows from each rank.
    std::vector<std::int64_t> rows = {};
  };
  using Parts = c10::SmallVector<Part, 1>;
  using Assemble = std::function<Tensors(Tensors)>;

  explicit Pending(ProcessSetPtr set) : set_(std::move(set)) {}

  ProcessSetState& set() const { return *set_; }
  Parts& parts() { return parts_; }
  /// Makes the results of the results of the parts.
  void set_assemble(Assemble assemble) { assemble_ = std::move(assemble); }
  void set_operations(std::weak_ptr<named::NamedOperations> operations) {
    operations_ = std::move(operations);
  }

  bool has_ended() const override;
  /// Whether the operations have ended. Causes progress.
  bool poll();
  /// Returns when the operations have succeeded, and the results are there. Throws their error.
  const Tensors& wait();

 private:
  void wait_for(const named::Operation& operation) const;

  ProcessSetPtr set_;
  std::weak_ptr<named::NamedOperations> operations_;
  Parts parts_;
  Assemble assemble_;
  Tensors results_;
  bool is_finished_ = false;
};

/// When the last reference is released, the set keeps operations that have not ended.
PendingPtr make_pending(ProcessSetPtr set);

/// `dense` with the device, the strides or the memory format of `like`.
Tensor laid_out(const Tensor& dense, const Tensor& like);

}  // namespace peal::hvd
