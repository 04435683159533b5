#include "python/c10d/sparse.h"

#include <ATen/core/LegacyTypeDispatch.h>

#include <chrono>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/guarded.h"

#include "python/c10d/operands.h"
#include "python/common/leaving.h"
#include "python/common/waiting.h"

namespace peal::python {
namespace {

/// The Work of a task, which reports its end by `end`.
class TaskWork final : public Work {
 public:
  void wait(Timeout timeout) override {
    const Deadline deadline =
        timeout == kGroupTimeout ? Deadline(TimePoint::max()) : Deadline::after(timeout);
    const auto ended = [](const State& state) { return state.ended; };
    if (!state_.wait(deadline, ended, [](const State&) {})) {
      throw Error(ErrorKind::kTimeout,
                  "all_reduce of a sparse tensor has not ended yet and continues");
    }
    if (const auto failure = exception()) std::rethrow_exception(failure);
  }

  bool is_completed() const override {
    return state_.with([](const State& state) { return state.ended; });
  }

  void when_completed(std::function<void()> then) override {
    const bool is_late = state_.with([&](State& state) {
      if (!state.ended) state.watchers.push_back(std::move(then));
      return state.ended;
    });
    if (is_late) then();
  }

  std::exception_ptr exception() const override {
    return state_.with([](const State& state) {
      return state.failure ? std::make_exception_ptr(Error(*state.failure)) : nullptr;
    });
  }

  Rank source() const override { return kAnySource; }

  void end(std::optional<Error> failure) {
    const auto watchers = state_.update([&](State& state) {
      state.ended = true;
      state.failure = std::move(failure);
      return std::exchange(state.watchers, {});
    });
    for (const auto& watcher : watchers) watcher();
  }

 private:
  struct State {
    bool ended = false;
    std::optional<Error> failure;
    std::vector<std::function<void()>> watchers;
  };

  mutable Guarded<State> state_;
};

/// A rank's description of its tensor. All but the number of elements must agree.
std::vector<std::int64_t> form_of(const at::Tensor& tensor) {
  std::vector<std::int64_t> form = {tensor._nnz(),
                                    tensor.sparse_dim(),
                                    static_cast<std::int64_t>(tensor.scalar_type()),
                                    tensor.dim()};
  // A hash of the sizes: the form needs a fixed length even if ranks differ in their dimensions.
  std::uint64_t hash = 0;
  for (const std::int64_t size : tensor.sizes()) {
    hash = hash * 1'000'003 + static_cast<std::uint64_t>(size);
  }
  form.push_back(static_cast<std::int64_t>(hash));
  return form;
}

/// The rows of `mine` of all ranks, in rank order. The number of rows may differ by rank.
at::Tensor gather_rows(ProcessGroup& group,
                       const at::Tensor& mine,
                       const std::vector<std::int64_t>& rows,
                       Timeout timeout) {
  const std::int64_t all = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  std::vector<std::int64_t> sizes = mine.sizes().vec();
  sizes[0] = all;
  at::Tensor gathered = at::empty(sizes, mine.options());
  const std::int64_t each = mine.size(0) > 0 ? mine.numel() / mine.size(0)
                            : all > 0        ? gathered.numel() / all
                                             : 0;
  const Carrier carrier = carrier_of(mine.scalar_type());
  std::vector<Elements> counts;
  for (const std::int64_t n : rows) counts.emplace_back(n * each * carrier.each);
  group.all_gather(TensorOperand(mine, Use::kRead).buffer(),
                   TensorOperand(gathered, Use::kWrite).buffer(),
                   {.counts = counts, .timeout = timeout});
  return gathered;
}

void sum(ProcessGroup& group, at::Tensor& tensor, Timeout timeout) {
  const at::AutoDispatchBelowAutograd no_grad;
  const at::Tensor mine = tensor.coalesce();
  const std::vector<std::int64_t> form = form_of(mine);
  std::vector<std::int64_t> forms(form.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(form, forms, {.timeout = timeout});

  std::vector<std::int64_t> elements;
  for (std::size_t at = 0; at < forms.size(); at += form.size()) {
    elements.push_back(forms[at]);
    if (!std::equal(
            form.begin() + 1, form.end(), forms.begin() + static_cast<std::ptrdiff_t>(at) + 1)) {
      throw Error(ErrorKind::kMismatch,
                  c10::str("all_reduce of a sparse tensor: rank ",
                           group.rank(),
                           " has sizes ",
                           tensor.sizes(),
                           " with ",
                           tensor.sparse_dim(),
                           " sparse dimensions and type ",
                           tensor.scalar_type(),
                           ", and rank ",
                           at / form.size(),
                           " differs: pass tensors of the same form on all ranks"));
    }
  }
  // Indices are stored by dimension; gathered indices must be stored by element.
  const at::Tensor indices =
      gather_rows(group, mine.indices().t().contiguous(), elements, timeout).t();
  const at::Tensor values = gather_rows(group, mine.values().contiguous(), elements, timeout);
  tensor.copy_(at::_sparse_coo_tensor_unsafe(indices, values, tensor.sizes()).coalesce());
}

}  // namespace

void add_into_first(const std::vector<at::Tensor>& tensors) {
  const at::AutoDispatchBelowAutograd no_grad;
  std::vector<at::Tensor> indices;
  std::vector<at::Tensor> values;
  for (const at::Tensor& tensor : tensors) {
    indices.push_back(tensor._indices());
    values.push_back(tensor._values());
  }
  at::Tensor first = tensors.front();
  first.copy_(at::_sparse_coo_tensor_unsafe(at::cat(indices, 1), at::cat(values), first.sizes())
                  .coalesce());
}

SparseSum::SparseSum(ProcessGroup& group, Timeout timeout) {
  std::vector<Rank> all(static_cast<std::size_t>(group.size()));
  std::iota(all.begin(), all.end(), 0);
  thread_.start();
  group_ = group.new_group(all, timeout);
}

SparseSum::~SparseSum() {
  if (!drain(Deadline::after(std::chrono::seconds(1)))) {
    group_->abort("this rank has released the group");
  }
}

bool SparseSum::drain(Deadline deadline) {
  const WorkPtr last = last_.with([](const auto& work) { return work.lock(); });
  return !last || wait_until_ended(*group_, *last, deadline);
}

void SparseSum::end(Deadline deadline) {
  drain(deadline);
  try {
    group_->destroy(deadline.left());
  } catch (const Error&) {
    // The Work of an interrupted sum reports this error.
  }
  thread_.close();
}

WorkPtr SparseSum::start(at::Tensor tensor, Timeout timeout) {
  auto work = std::make_shared<TaskWork>();
  last_.with([&](auto& last) { last = work; });
  thread_.post([group = group_, work, tensor = std::move(tensor), timeout]() mutable {
    const BackendThread here;
    std::optional<Error> failure;
    try {
      sum(*group, tensor, timeout);
    } catch (const std::exception&) {
      failure = current_error("all_reduce of a sparse tensor");
    }
    tensor.reset();
    std::exchange(work, nullptr)->end(std::move(failure));
  });
  return work;
}

}  // namespace peal::python
