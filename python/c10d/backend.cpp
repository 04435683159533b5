#include "python/c10d/backend.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "peal/base/error.h"

#include "python/common/gil.h"
#include "python/common/processes.h"
#include "python/common/signals.h"
#include "python/common/waiting.h"

namespace peal::python {
namespace {

using c10d::OpType;
using Tensors = TorchBackend::Tensors;
using TensorLists = TorchBackend::TensorLists;

/// An argument check that failed, in the words of torch's own backends.
struct Invalid {
  const char* operation;

  void operator()(const std::string& why) const {
    TORCH_CHECK(false, "ProcessGroupPeal::", operation, ": ", why);
  }
};

Tensors inputs_of(const Operands& operands) {
  Tensors tensors;
  for (const Operand& operand : operands.in.empty() ? operands.out : operands.in) {
    tensors.push_back(operand.tensor());
  }
  return tensors;
}

/// In a profile for as long as it lives, if somebody takes one.
class Profiled {
 public:
  Profiled(const char* title, const Operands& operands) : record_(at::RecordScope::FUNCTION) {
    if (!record_.isActive()) return;
    if (!record_.needsInputs()) {
      record_.before(title);
      return;
    }
    std::vector<c10::IValue> inputs;
    for (at::Tensor& tensor : inputs_of(operands)) inputs.emplace_back(std::move(tensor));
    record_.before(title, c10::ArrayRef<const c10::IValue>(inputs.data(), inputs.size()));
  }

 private:
  at::RecordFunction record_;
};

Operands in_place(at::TensorList data) { return {{}, operands(data, Use::kReadWrite)}; }
Operands from_to(at::TensorList in, at::TensorList out) {
  return {operands(in, Use::kRead), operands(out, Use::kWrite)};
}

/// Whether one operation can carry all of them.
bool is_of_one_type(const Operands& operands) {
  const auto& some = operands.out;
  return std::all_of(some.begin(), some.end(), [&](const Operand& one) {
    return one.buffer().dtype == some.front().buffer().dtype;
  });
}

/// Elements for each rank, of tensors that are divided along their first dimension; none where all
/// ranks have as many.
std::vector<Elements> counts_of(const std::vector<std::int64_t>& splits, const at::Tensor& tensor) {
  std::vector<Elements> counts;
  if (splits.empty()) return counts;
  const std::int64_t row = tensor.size(0) > 0 ? tensor.numel() / tensor.size(0) : 0;
  const std::int64_t each = row * carrier_of(tensor.scalar_type()).each;
  for (const std::int64_t rows : splits) counts.emplace_back(rows * each);
  return counts;
}

void check_sizes(const Invalid& invalid,
                 const at::Tensor& large,
                 const at::Tensor& small,
                 int size) {
  if (large.scalar_type() != small.scalar_type()) {
    invalid("output tensor must have the same type as input tensor");
  }
  if (large.numel() != small.numel() * size) {
    invalid(c10::str("tensors of ",
                     large.numel(),
                     " and ",
                     small.numel(),
                     " elements do not go together: the large one must have world_size (",
                     size,
                     ") times as many as the small one"));
  }
}

}  // namespace

// ---- the group

TorchBackend::TorchBackend(int rank, int size, Parts parts)
    : Backend(rank, size),
      parts_(std::move(parts)),
      timeout_ms_(parts_.options->timeout.count()),
      generation_(generation()) {
  init();
  if (!parts_.options->lazy) group();
}

/// Python frees it with the GIL held, which threads that end here may want: to let go of tensors.
TorchBackend::~TorchBackend() {
  if (generation() != generation_) {
    // Of the process that this was forked from: its threads are not here, and its connections are
    // not this one's to close.
    static_cast<void>(new ProcessGroupPtr(std::move(group_)));
    static_cast<void>(sparse_.release());
    return;
  }
  const WithoutGil without_gil;
  sparse_.reset();
  group_.reset();
}

ProcessGroupPtr TorchBackend::shared_group() {
  group();
  return group_;
}

ProcessGroup& TorchBackend::group() {
  TORCH_CHECK(generation() == generation_,
              "this process was forked from one that is in the group ",
              getGroupUid(),
              ", and is not in it itself: call torch.distributed.init_process_group here");
  if (ProcessGroup* const made = made_.load(std::memory_order_acquire)) return *made;
  const std::lock_guard lock(making_);
  if (!group_) {
    group_ = interruptible([&] { return parts_.make_group(); });
    parts_.make_group = nullptr;
    enlist(group_);
    made_.store(group_.get(), std::memory_order_release);
  }
  return *group_;
}

Timeout TorchBackend::resolve(std::chrono::milliseconds timeout) const {
  return timeout == c10d::kUnsetTimeout ? Timeout(timeout_ms_.load(std::memory_order_relaxed))
                                        : timeout;
}

c10::intrusive_ptr<c10d::Backend::Options> TorchBackend::getBackendOptions() {
  return options_for(nullptr);
}

c10::intrusive_ptr<TorchOptions> TorchBackend::options_for(
    const c10::intrusive_ptr<Options>& options) const {
  auto own = c10::make_intrusive<TorchOptions>();
  own->timeout = options ? options->timeout : resolve(c10d::kUnsetTimeout);
  const auto* given = dynamic_cast<const TorchOptions*>(options.get());
  own->lazy = given != nullptr ? given->lazy : parts_.options->lazy;
  return own;
}

void TorchBackend::setTimeout(std::chrono::milliseconds timeout) { timeout_ms_ = timeout.count(); }

void TorchBackend::setGroupUid(const std::string& uid) { Backend::setGroupUid(uid); }

c10::intrusive_ptr<c10d::Backend> TorchBackend::split(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const std::vector<int>& ranks,
                                                      const c10::intrusive_ptr<Options>& options) {
  const auto self = std::find(ranks.begin(), ranks.end(), rank_);
  if (self == ranks.end()) return nullptr;
  group();
  Parts parts = {store, options_for(options), nullptr, parts_.meet_in};
  parts.make_group = [parent = group_, ranks, timeout = parts.options->timeout] {
    return parent->new_group(ranks, timeout);
  };
  return c10::make_intrusive<TorchBackend>(
      static_cast<int>(self - ranks.begin()), static_cast<int>(ranks.size()), std::move(parts));
}

c10::intrusive_ptr<c10d::Backend> TorchBackend::meet_anew(
    const c10::intrusive_ptr<c10d::Store>& store,
    int rank,
    int size,
    const c10::intrusive_ptr<Options>& options) {
  Parts parts = {store, options_for(options), nullptr, parts_.meet_in};
  parts.make_group =
      [store, rank, size, meet_in = parts_.meet_in, timeout = parts.options->timeout] {
        return meet_in(store, rank, size, timeout);
      };
  return c10::make_intrusive<TorchBackend>(rank, size, std::move(parts));
}

c10::intrusive_ptr<c10d::Backend> TorchBackend::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                                      const c10::intrusive_ptr<Options>& options,
                                                      const int& rank,
                                                      const int& size) {
  return meet_anew(store, rank, size, options);
}

c10::intrusive_ptr<c10d::Backend> TorchBackend::shrink(const std::vector<std::int64_t>& without,
                                                       int,
                                                       const c10::intrusive_ptr<Options>& options) {
  int before = 0;
  int left = 0;
  for (int rank = 0; rank < size_; ++rank) {
    if (std::find(without.begin(), without.end(), rank) != without.end()) continue;
    if (rank < rank_) ++before;
    ++left;
  }
  const bool stays = std::find(without.begin(), without.end(), rank_) == without.end();
  TORCH_CHECK(stays, "shrink: rank ", rank_, " is among those to be excluded, who do not call it");
  const auto store = c10::make_intrusive<c10d::PrefixStore>(
      c10::str("shrunk/", shrunk_.fetch_add(1)), parts_.store);
  return meet_anew(store, before, left, options);
}

void TorchBackend::abort() {
  if (made_.load() != nullptr && generation() == generation_) {
    group_->abort("torch.distributed's abort");
  }
}

/// Where an exception is on its way out of Python, the peers are told what it says.
void TorchBackend::shutdown() {
  if (made_.load() == nullptr || generation() != generation_) return;
  if (const auto what = handled_exception()) group_->abort_by_exception(*what);
  try {
    group_->destroy();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTimeout) return;  // it is over all the same
    throw;
  }
}

// ---- how an operation is carried out

template <class MakeResults, class Run, class Start>
TorchBackend::WorkRef TorchBackend::carry_out(
    const Asked& asked, Operands operands, MakeResults results, Run run, Start start) {
  ProcessGroup& group = this->group();
  const std::uint64_t number = ++sequence_;
  if (!asked.is_async && !is_coalescing_) {
    const Profiled profiled(asked.kind.title, operands);
    interruptible([&] { run(group, operands); });
    operands.finish();
    return nullptr;
  }
  WorkPtr work = interruptible([&] { return start(group, operands); });
  WorkRef torch_work = c10::make_intrusive<TorchWork>(rank_,
                                                      asked.kind,
                                                      inputs_of(operands),
                                                      std::move(work),
                                                      std::move(operands),
                                                      results(),
                                                      number);
  if (is_coalescing_) coalesced_.push_back(torch_work);
  return torch_work;
}

template <class Run, class Start>
TorchBackend::WorkRef TorchBackend::carry_out_each(
    const Asked& asked, Tensors& out, Tensors& in, Run run, Start start) {
  Operands all = in.empty() ? in_place(out) : from_to(in, out);
  if (is_of_one_type(all)) {
    return carry_out(
        asked,
        std::move(all),
        [&] { return Results{out}; },
        [&](ProcessGroup& g, const Operands& o) { run(g, o.inputs(), o.outputs()); },
        [&](ProcessGroup& g, const Operands& o) { return start(g, o.inputs(), o.outputs()); });
  }
  const auto one_by_one = [](const Operands& operands, auto use) {
    const std::vector<ConstBuffer> inputs = operands.inputs();
    const std::vector<Buffer> outputs = operands.outputs();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      use(inputs.empty() ? std::span<const ConstBuffer>() : std::span(inputs).subspan(i, 1),
          std::span(outputs).subspan(i, 1));
    }
  };
  return carry_out(
      asked,
      std::move(all),
      [&] { return Results{out}; },
      [&](ProcessGroup& g, const Operands& o) {
        one_by_one(o, [&](const auto& inputs, const auto& outputs) { run(g, inputs, outputs); });
      },
      [&](ProcessGroup& g, const Operands& o) {
        std::vector<WorkPtr> works;
        one_by_one(o, [&](const auto& inputs, const auto& outputs) {
          works.push_back(start(g, inputs, outputs));
        });
        return join(std::move(works));
      });
}

void TorchBackend::startCoalescing() {
  is_coalescing_ = true;
  coalesced_.clear();
}

TorchBackend::WorkRef TorchBackend::endCoalescing() {
  is_coalescing_ = false;
  return c10::make_intrusive<CoalescedWork>(rank_, std::exchange(coalesced_, {}));
}

// ---- all ranks

TorchBackend::WorkRef TorchBackend::broadcast(Tensors& data,
                                              const c10d::BroadcastOptions& options) {
  const Invalid invalid{"broadcast"};
  c10d::assertRootRank(invalid, options.rootRank, size_);
  c10d::assertRootTensor(invalid, options.rootTensor, static_cast<std::int64_t>(data.size()));
  c10d::assertSingleElement(invalid, data);
  const Timeout timeout = resolve(options.timeout);
  const Rank root = static_cast<Rank>(options.rootRank);
  return carry_out(
      {{OpType::BROADCAST, "peal:broadcast"}, timeout, options.asyncOp},
      in_place(data),
      [&] { return Results{data}; },
      [=](ProcessGroup& g, const Operands& o) { g.broadcast(o.out[0].buffer(), root, timeout); },
      [=](ProcessGroup& g, const Operands& o) {
        return g.broadcast_async(o.out[0].buffer(), root, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::allreduce(Tensors& data,
                                              const c10d::AllreduceOptions& options) {
  if (data.size() != 1) c10d::assertSingleElement(Invalid{"allreduce"}, data);
  if (data[0].layout() == at::kSparse) return allreduce_sparse(data, options);
  const Timeout timeout = resolve(options.timeout);
  const ReduceOp op = reduce_op_of(options.reduceOp, data[0].scalar_type());
  return carry_out(
      {{OpType::ALLREDUCE, "peal:all_reduce"}, timeout, options.asyncOp},
      in_place(data),
      [&] { return Results{data}; },
      [=](ProcessGroup& g, const Operands& o) { g.all_reduce(o.out[0].buffer(), op, timeout); },
      [=](ProcessGroup& g, const Operands& o) {
        return g.all_reduce_async(o.out[0].buffer(), op, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::allreduce_sparse(Tensors& data,
                                                     const c10d::AllreduceOptions& options) {
  const Invalid invalid{"allreduce"};
  c10d::assertSingleElement(invalid, data);
  c10d::assertLayoutMatch(invalid, at::kSparse, data, 0);
  c10d::assertCPU(invalid, data);
  if (options.reduceOp.op_ != c10d::ReduceOp::SUM) {
    invalid(
        "unsupported reduction operation (allreduce of sparse tensors only works with "
        "ReduceOp.SUM)");
  }
  const Timeout timeout = resolve(options.timeout);
  if (!sparse_) {
    ProcessGroup& all = group();
    sparse_ = interruptible([&] { return std::make_unique<SparseSum>(all, timeout); });
  }
  const auto start = [this, tensor = data[0], timeout](ProcessGroup&, const Operands&) {
    return sparse_->start(tensor, timeout);
  };
  return carry_out(
      {{OpType::_ALLREDUCE_SPARSE, "peal:sparse_all_reduce"}, timeout, options.asyncOp},
      {},
      [&] { return Results{data}; },
      [&](ProcessGroup& g, const Operands& o) { wait_for(*start(g, o), kGroupTimeout); },
      start);
}

TorchBackend::WorkRef TorchBackend::allreduce_coalesced(
    Tensors& data, const c10d::AllreduceCoalescedOptions& options) {
  const Invalid invalid{"allreduce_coalesced"};
  c10d::assertNonEmpty(invalid, data);
  const Timeout timeout = resolve(options.timeout);
  std::vector<at::ScalarType> types;
  for (const at::Tensor& tensor : data) types.push_back(tensor.scalar_type());
  const ReduceOp op = reduce_op_of(options.reduceOp, types.front());
  for (const at::ScalarType type : types) reduce_op_of(options.reduceOp, type);
  Tensors none;
  return carry_out_each(
      {{OpType::ALLREDUCE_COALESCED, "peal:all_reduce"}, timeout, options.asyncOp},
      data,
      none,
      [=](ProcessGroup& g, const auto&, const auto& out) { g.all_reduce(out, op, timeout); },
      [=](ProcessGroup& g, const auto&, const auto& out) {
        return g.all_reduce_async(out, op, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::reduce(Tensors& data, const c10d::ReduceOptions& options) {
  const Invalid invalid{"reduce"};
  c10d::assertRootRank(invalid, options.rootRank, size_);
  c10d::assertRootTensor(invalid, options.rootTensor, static_cast<std::int64_t>(data.size()));
  c10d::assertSingleElement(invalid, data);
  const Timeout timeout = resolve(options.timeout);
  const Rank root = static_cast<Rank>(options.rootRank);
  const ReduceOp op = reduce_op_of(options.reduceOp, data[0].scalar_type());
  return carry_out(
      {{OpType::REDUCE, "peal:reduce"}, timeout, options.asyncOp},
      in_place(data),
      [&] { return Results{data}; },
      [=](ProcessGroup& g, const Operands& o) { g.reduce(o.out[0].buffer(), root, op, timeout); },
      [=](ProcessGroup& g, const Operands& o) {
        return g.reduce_async(o.out[0].buffer(), root, op, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::allgather(TensorLists& out,
                                              Tensors& in,
                                              const c10d::AllgatherOptions& options) {
  const Invalid invalid{"allgather"};
  c10d::assertSingleElementInput(invalid, in);
  if (out.size() != 1) invalid("requires a single-element output list of lists");
  if (out[0].size() != static_cast<std::size_t>(size_)) {
    invalid("invalid output tensor list at index 0 (expected one tensor for each rank)");
  }
  c10d::assertTypeMatch(invalid, in[0].options(), out[0], 0);
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::ALLGATHER, "peal:all_gather"}, timeout, options.asyncOp},
      from_to(in, out[0]),
      [&] { return Results(out); },
      [=](ProcessGroup& g, const Operands& o) {
        g.all_gather(o.in[0].buffer(), o.outputs(), timeout);
      },
      [=](ProcessGroup& g, const Operands& o) {
        return g.all_gather_async(o.in[0].buffer(), o.outputs(), timeout);
      });
}

TorchBackend::WorkRef TorchBackend::_allgather_base(at::Tensor& out,
                                                    at::Tensor& in,
                                                    const c10d::AllgatherOptions& options) {
  check_sizes(Invalid{"_allgather_base"}, out, in, size_);
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::_ALLGATHER_BASE, "peal:all_gather"}, timeout, options.asyncOp},
      from_to(in, out),
      [&] { return Results{{out}}; },
      [=](ProcessGroup& g, const Operands& o) {
        g.all_gather(o.in[0].buffer(), o.out[0].buffer(), {}, timeout);
      },
      [=](ProcessGroup& g, const Operands& o) {
        return g.all_gather_async(o.in[0].buffer(), o.out[0].buffer(), {}, timeout);
      });
}

/// One all_gather for each input: the outputs lie by rank, and apart.
TorchBackend::WorkRef TorchBackend::allgather_coalesced(TensorLists& out,
                                                        Tensors& in,
                                                        const c10d::AllgatherOptions& options) {
  const Invalid invalid{"allgather_coalesced"};
  c10d::assertNonEmpty(invalid, in);
  c10d::assertAllgatherCoalescedOutputTensorLists(invalid, out, in.size(), size_);
  const Timeout timeout = resolve(options.timeout);
  Tensors all;
  for (const Tensors& of_rank : out) all.insert(all.end(), of_rank.begin(), of_rank.end());
  const std::size_t number = in.size();
  const auto of_all_ranks = [number](const Operands& o, std::size_t k) {
    std::vector<Buffer> buffers;
    for (std::size_t at = k; at < o.out.size(); at += number) buffers.push_back(o.out[at].buffer());
    return buffers;
  };
  return carry_out(
      {{OpType::ALLGATHER_COALESCED, "peal:all_gather"}, timeout, options.asyncOp},
      from_to(in, all),
      [&] { return Results(out); },
      [=](ProcessGroup& g, const Operands& o) {
        for (std::size_t k = 0; k < number; ++k) {
          g.all_gather(o.in[k].buffer(), of_all_ranks(o, k), timeout);
        }
      },
      [=](ProcessGroup& g, const Operands& o) {
        std::vector<WorkPtr> works;
        for (std::size_t k = 0; k < number; ++k) {
          works.push_back(g.all_gather_async(o.in[k].buffer(), of_all_ranks(o, k), timeout));
        }
        return join(std::move(works));
      });
}

TorchBackend::WorkRef TorchBackend::allgather_into_tensor_coalesced(
    Tensors& out, Tensors& in, const c10d::AllgatherOptions& options) {
  const Invalid invalid{"allgather_into_tensor_coalesced"};
  c10d::assertNonEmpty(invalid, in);
  c10d::assertInputOutputTensorListsSameSize(invalid, out.size(), in.size());
  for (std::size_t k = 0; k < in.size(); ++k) check_sizes(invalid, out[k], in[k], size_);
  const Timeout timeout = resolve(options.timeout);
  return carry_out_each(
      {{OpType::COALESCED, "peal:all_gather"}, timeout, options.asyncOp},
      out,
      in,
      [=](ProcessGroup& g, const auto& from, const auto& to) { g.all_gather(from, to, timeout); },
      [=](ProcessGroup& g, const auto& from, const auto& to) {
        return g.all_gather_async(from, to, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::gather(TensorLists& out,
                                           Tensors& in,
                                           const c10d::GatherOptions& options) {
  const Invalid invalid{"gather"};
  c10d::assertRootRank(invalid, options.rootRank, size_);
  c10d::assertSingleElementInput(invalid, in);
  const Rank root = static_cast<Rank>(options.rootRank);
  if (rank_ == root) {
    if (out.size() != 1)
      invalid("requires a single-element output list containing a list with world_size tensors");
    if (out[0].size() != static_cast<std::size_t>(size_)) {
      invalid(c10::str("Incorrect output list size ",
                       out[0].size(),
                       ". Output list size should be ",
                       size_,
                       ", same as size of the process group."));
    }
    c10d::assertTypeMatch(invalid, in[0].options(), out[0], 0);
  } else if (!out.empty()) {
    invalid("requires empty output on non-root");
  }
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::GATHER, "peal:gather"}, timeout, options.asyncOp},
      from_to(in, out.empty() ? at::TensorList() : at::TensorList(out[0])),
      [&] { return Results(out); },
      [=](ProcessGroup& g, const Operands& o) {
        g.gather(o.in[0].buffer(), o.outputs(), root, timeout);
      },
      [=](ProcessGroup& g, const Operands& o) {
        return g.gather_async(o.in[0].buffer(), o.outputs(), root, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::scatter(Tensors& out,
                                            TensorLists& in,
                                            const c10d::ScatterOptions& options) {
  const Invalid invalid{"scatter"};
  c10d::assertRootRank(invalid, options.rootRank, size_);
  c10d::assertSingleElementOutput(invalid, out);
  const Rank root = static_cast<Rank>(options.rootRank);
  if (rank_ == root) {
    if (in.size() != 1)
      invalid("requires a single-element input list containing a list with world_size tensors");
    if (in[0].size() != static_cast<std::size_t>(size_)) {
      invalid(c10::str("Incorrect input list size ",
                       in[0].size(),
                       ". Input list size should be ",
                       size_,
                       ", same as size of the process group."));
    }
    c10d::assertTypeMatch(invalid, out[0].options(), in[0], 0);
  } else if (!in.empty()) {
    invalid("requires empty input on non-root");
  }
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::SCATTER, "peal:scatter"}, timeout, options.asyncOp},
      from_to(in.empty() ? at::TensorList() : at::TensorList(in[0]), out),
      [&] { return Results{out}; },
      [=](ProcessGroup& g, const Operands& o) {
        g.scatter(o.inputs(), o.out[0].buffer(), root, timeout);
      },
      [=](ProcessGroup& g, const Operands& o) {
        return g.scatter_async(o.inputs(), o.out[0].buffer(), root, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::reduce_scatter(Tensors& out,
                                                   TensorLists& in,
                                                   const c10d::ReduceScatterOptions& options) {
  const Invalid invalid{"reduce_scatter"};
  c10d::assertSingleElementOutput(invalid, out);
  if (in.size() != 1 || in[0].size() != static_cast<std::size_t>(size_)) {
    invalid("requires a single-element input list containing a list with world_size tensors");
  }
  c10d::assertTypeMatch(invalid, out[0].options(), in[0], 0);
  const Timeout timeout = resolve(options.timeout);
  const ReduceOp op = reduce_op_of(options.reduceOp, out[0].scalar_type());
  return carry_out(
      {{OpType::REDUCE_SCATTER, "peal:reduce_scatter"}, timeout, options.asyncOp},
      from_to(in[0], out),
      [&] { return Results{out}; },
      [=](ProcessGroup& g, const Operands& o) {
        g.reduce_scatter(o.inputs(), o.out[0].buffer(), op, timeout);
      },
      [=](ProcessGroup& g, const Operands& o) {
        return g.reduce_scatter_async(o.inputs(), o.out[0].buffer(), op, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::_reduce_scatter_base(
    at::Tensor& out, at::Tensor& in, const c10d::ReduceScatterOptions& options) {
  check_sizes(Invalid{"_reduce_scatter_base"}, in, out, size_);
  const Timeout timeout = resolve(options.timeout);
  const ReduceOp op = reduce_op_of(options.reduceOp, out.scalar_type());
  return carry_out(
      {{OpType::_REDUCE_SCATTER_BASE, "peal:reduce_scatter"}, timeout, options.asyncOp},
      from_to(in, out),
      [&] { return Results{{out}}; },
      [=](ProcessGroup& g, const Operands& o) {
        g.reduce_scatter(o.in[0].buffer(), o.out[0].buffer(), op, {}, timeout);
      },
      [=](ProcessGroup& g, const Operands& o) {
        return g.reduce_scatter_async(o.in[0].buffer(), o.out[0].buffer(), op, {}, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::reduce_scatter_tensor_coalesced(
    Tensors& out, Tensors& in, const c10d::ReduceScatterOptions& options) {
  const Invalid invalid{"reduce_scatter_tensor_coalesced"};
  c10d::assertNonEmpty(invalid, in);
  c10d::assertInputOutputTensorListsSameSize(invalid, out.size(), in.size());
  for (std::size_t k = 0; k < in.size(); ++k) check_sizes(invalid, in[k], out[k], size_);
  const Timeout timeout = resolve(options.timeout);
  const ReduceOp op = reduce_op_of(options.reduceOp, out[0].scalar_type());
  for (const at::Tensor& tensor : out) reduce_op_of(options.reduceOp, tensor.scalar_type());
  return carry_out_each(
      {{OpType::REDUCE_SCATTER_TENSOR_COALESCED, "peal:reduce_scatter"}, timeout, options.asyncOp},
      out,
      in,
      [=](ProcessGroup& g, const auto& from, const auto& to) {
        g.reduce_scatter(from, to, op, timeout);
      },
      [=](ProcessGroup& g, const auto& from, const auto& to) {
        return g.reduce_scatter_async(from, to, op, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::alltoall_base(at::Tensor& out,
                                                  at::Tensor& in,
                                                  std::vector<std::int64_t>& out_splits,
                                                  std::vector<std::int64_t>& in_splits,
                                                  const c10d::AllToAllOptions& options) {
  const Invalid invalid{"alltoall_base"};
  if (out.scalar_type() != in.scalar_type()) invalid("tensors must have identical type");
  c10d::checkSplitSizes(in_splits, in, size_);
  c10d::checkSplitSizes(out_splits, out, size_);
  const Timeout timeout = resolve(options.timeout);
  // One side may be split equally while the other is not.
  std::vector<std::int64_t> to_splits = in_splits, from_splits = out_splits;
  if (to_splits.empty() != from_splits.empty()) {
    std::vector<std::int64_t>& empty = to_splits.empty() ? to_splits : from_splits;
    empty.assign(static_cast<std::size_t>(size_), (to_splits.empty() ? in : out).size(0) / size_);
  }
  const std::vector<Elements> to = counts_of(to_splits, in);
  const std::vector<Elements> from = counts_of(from_splits, out);
  return carry_out(
      {{OpType::ALLTOALL_BASE, "peal:all_to_all"}, timeout, options.asyncOp},
      from_to(in, out),
      [&] { return Results{{out}}; },
      [&](ProcessGroup& g, const Operands& o) {
        g.all_to_all(o.in[0].buffer(), o.out[0].buffer(), to, from, timeout);
      },
      [&](ProcessGroup& g, const Operands& o) {
        return g.all_to_all_async(o.in[0].buffer(), o.out[0].buffer(), to, from, timeout);
      });
}

TorchBackend::WorkRef TorchBackend::alltoall(Tensors& out,
                                             Tensors& in,
                                             const c10d::AllToAllOptions& options) {
  const Invalid invalid{"alltoall"};
  c10d::assertAllToAllTensorListSizes(invalid, out.size(), in.size(), size_);
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::ALLTOALL, "peal:all_to_all"}, timeout, options.asyncOp},
      from_to(in, out),
      [&] { return Results{out}; },
      [=](ProcessGroup& g, const Operands& o) { g.all_to_all(o.inputs(), o.outputs(), timeout); },
      [=](ProcessGroup& g, const Operands& o) {
        return g.all_to_all_async(o.inputs(), o.outputs(), timeout);
      });
}

/// `device_ids` say where other backends would meet.
TorchBackend::WorkRef TorchBackend::barrier(const c10d::BarrierOptions& options) {
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::BARRIER, "peal:barrier"}, timeout, options.asyncOp},
      {},
      [] { return Results(); },
      [=](ProcessGroup& g, const Operands&) { g.barrier(timeout); },
      [=](ProcessGroup& g, const Operands&) { return g.barrier_async(timeout); });
}

void TorchBackend::monitoredBarrier(const c10d::BarrierOptions& options, bool) {
  const Timeout timeout = resolve(options.timeout);
  ProcessGroup& all = group();
  interruptible([&] { all.monitored_barrier(timeout); });
}

// ---- two ranks

TorchBackend::WorkRef TorchBackend::send(Tensors& data, int to, int tag) {
  c10d::assertSingleElement(Invalid{"send"}, data);
  const Timeout timeout = resolve(c10d::kUnsetTimeout);
  const auto start = [=](ProcessGroup& g, const Operands& o) {
    return g.isend(o.in[0].buffer(), to, Tag{tag}, timeout);
  };
  return carry_out(
      {{OpType::SEND, "peal:send"}, timeout, true},
      {operands(data, Use::kRead), {}},
      [] { return Results(); },
      start,
      start);
}

TorchBackend::WorkRef TorchBackend::receive(Tensors& data, Rank from, int tag, OpType type) {
  c10d::assertSingleElement(Invalid{"recv"}, data);
  const Timeout timeout = resolve(c10d::kUnsetTimeout);
  const auto start = [=](ProcessGroup& g, const Operands& o) {
    return g.irecv(o.out[0].buffer(), from, Tag{tag}, timeout);
  };
  return carry_out(
      {{type, "peal:recv"}, timeout, true},
      {{}, operands(data, Use::kWrite)},
      [&] { return Results{data}; },
      start,
      start);
}

TorchBackend::WorkRef TorchBackend::recv(Tensors& data, int from, int tag) {
  return receive(data, from, tag, OpType::RECV);
}

TorchBackend::WorkRef TorchBackend::recvAnysource(Tensors& data, int tag) {
  return receive(data, kAnySource, tag, OpType::RECVANYSOURCE);
}

}  // namespace peal::python
