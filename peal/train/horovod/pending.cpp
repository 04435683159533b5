#include "peal/train/horovod/pending.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/system/per_process.h"
#include "peal/train/horovod/errors.h"

namespace peal::hvd {
namespace {

Tensor finished(const Pending::Part& part) {
  if (!part.target.defined()) return laid_out(part.dense, part.like);
  if (!part.dense.is_same(part.target)) {
    part.target.copy_(part.dense);
  } else if (!part.target.is_inference()) {
    torch::autograd::impl::bump_version(part.target);
  }
  return part.target;
}

}  // namespace

bool Pending::has_ended() const {
  return std::ranges::all_of(parts_, [](const Part& part) {
    return part.operation == nullptr || part.operation->is_completed();  // null: not submitted
  });
}

bool Pending::poll() {
  const auto operations = operations_.lock();
  for (const Part& part : parts_) {
    if (part.operation->is_completed()) continue;
    if (!operations || !operations->poll(*part.operation)) return false;
  }
  return true;
}

void Pending::wait_for(const named::Operation& operation) const {
  if (const auto operations = operations_.lock()) return operations->wait(operation);
  if (!operation.is_completed()) {
    throw Error(ErrorKind::kAborted, "Horovod has been shut down: call init before operations");
  }
  if (operation.error()) std::rethrow_exception(operation.error());
}

const Tensors& Pending::wait() {
  if (is_finished_) return results_;
  std::exception_ptr failure;
  for (const Part& part : parts_) {
    try {
      wait_for(*part.operation);
    } catch (...) {
      if (!failure) failure = std::current_exception();
      if (!part.operation->is_completed()) break;  // interrupted
    }
  }
  if (failure) internal_errors([&] { std::rethrow_exception(failure); });
  const torch::NoGradGuard no_grad;
  results_.reserve(parts_.size());
  for (const Part& part : parts_) results_.push_back(finished(part));
  if (assemble_) results_ = assemble_(std::move(results_));
  for (Part& part : parts_) part.input.reset();
  is_finished_ = true;
  return results_;
}

PendingPtr make_pending(ProcessSetPtr set) {
  const auto release = [owner = OwnerProcess()](Pending* pending) {
    std::unique_ptr<Pending> last(pending);
    if (!owner.is_current()) {
      static_cast<void>(last.release());  // the parent's threads work on its memory
    } else if (!last->has_ended()) {
      ProcessSetState& owning_set = last->set();
      owning_set.keep(std::move(last));
    }
  };
  return {new Pending(std::move(set)), release};
}

bool poll(const PendingPtr& pending) { return pending->poll(); }
const Tensors& wait_for(const PendingPtr& pending) { return pending->wait(); }

Tensor laid_out(const Tensor& dense, const Tensor& like) {
  if (!like.defined()) return dense;
  if (dense.sizes() == like.sizes()) return torch::empty_like(like).copy_(dense);
  return dense.to(like.device()).contiguous(like.suggest_memory_format());
}

}  // namespace peal::hvd
