// The collectives on whole tensors.
#include <ATen/core/LegacyTypeDispatch.h>

#include <string>

#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "peal/base/error.h"

#include "python/c10d/backend.h"
#include "python/c10d/carry_out.h"
#include "python/common/waiting.h"

namespace peal::python {

using c10d::OpType;

namespace {

using Tensors = TorchBackend::Tensors;

/// Copies of tensors[k] to all other tensors of the list.
std::vector<TensorOperands::Copy> copies_of(const Tensors& tensors, std::size_t k) {
  std::vector<TensorOperands::Copy> copies;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_same(tensors[k])) copies.push_back({tensor, tensors[k]});
  }
  return copies;
}

/// The operand tensors[k]; all other tensors of the list get a copy of the result.
TensorOperands one_for_all(const Tensors& tensors, std::size_t k) {
  TensorOperands operands = in_place(tensors[k]);
  if (tensors.size() > 1) operands.copies = copies_of(tensors, k);
  return operands;
}

/// tensors[0] = op over all tensors of the list
/// As in gloo, several tensors of a rank count as the contributions of several members.
/// Shape: the same for all tensors.
void reduce_into_first(const Invalid& invalid, const Tensors& tensors, ReduceOp::Kind kind) {
  if (kind == ReduceOp::Kind::kAvg) {
    invalid(
        "Cannot use ReduceOp.AVG with several tensors on a rank: the number may differ by rank");
  }
  const at::AutoDispatchBelowAutograd no_grad;
  at::Tensor first = tensors[0];
  for (std::size_t k = 1; k < tensors.size(); ++k) {
    const at::Tensor& next = tensors[k];
    switch (kind) {
      case ReduceOp::Kind::kSum:
      case ReduceOp::Kind::kPremulSum:  // all tensors of a rank have one factor
        first.add_(next);
        break;
      case ReduceOp::Kind::kProduct:
        first.mul_(next);
        break;
      case ReduceOp::Kind::kMin:
        first.copy_(at::minimum(first, next));
        break;
      case ReduceOp::Kind::kMax:
        first.copy_(at::maximum(first, next));
        break;
      case ReduceOp::Kind::kBand:
        first.bitwise_and_(next);
        break;
      case ReduceOp::Kind::kBor:
        first.bitwise_or_(next);
        break;
      case ReduceOp::Kind::kBxor:
        first.bitwise_xor_(next);
        break;
      case ReduceOp::Kind::kAvg:  // rejected above
        break;
    }
  }
}

/// The argument checks of an allreduce of dense or sparse tensors.
void check_alike(const Invalid& invalid, const Tensors& tensors) {
  c10d::assertNonEmpty(invalid, tensors);
  if (tensors.size() == 1) return;
  c10d::assertLayoutMatch(invalid, tensors);
  c10d::assertTypeAndSizesMatch(invalid, tensors);
}

}  // namespace

TorchBackend::WorkRef TorchBackend::broadcast(Tensors& data,
                                              const c10d::BroadcastOptions& options) {
  const Invalid invalid{"broadcast"};
  c10d::assertRootRank(invalid, options.rootRank, size_);
  c10d::assertRootTensor(invalid, options.rootTensor, static_cast<std::int64_t>(data.size()));
  c10d::assertTypeAndSizesMatch(invalid, data);
  const Timeout timeout = resolve(options.timeout);
  const Rank root = static_cast<Rank>(options.rootRank);
  return carry_out(
      {{OpType::BROADCAST, "peal:broadcast"}, timeout, options.asyncOp},
      one_for_all(data, static_cast<std::size_t>(options.rootTensor)),
      [&] { return Results{data}; },
      Forms{&ProcessGroup::broadcast, &ProcessGroup::broadcast_async},
      [&](auto&& broadcast, const TensorOperands& o) {
        return broadcast(o.out[0].buffer(), root, CallOptions{.timeout = timeout});
      });
}

TorchBackend::WorkRef TorchBackend::allreduce(Tensors& data,
                                              const c10d::AllreduceOptions& options) {
  const Invalid invalid{"allreduce"};
  check_alike(invalid, data);
  if (data[0].layout() == at::kSparse) return allreduce_sparse(data, options);
  const Timeout timeout = resolve(options.timeout);
  const ReduceOp op = reduce_op_of(options.reduceOp, data[0].scalar_type());
  if (data.size() > 1) reduce_into_first(invalid, data, op.kind);
  registrations_.note_use(group(), data[0]);
  return carry_out(
      {{OpType::ALLREDUCE, "peal:all_reduce"}, timeout, options.asyncOp},
      one_for_all(data, 0),
      [&] { return Results{data}; },
      Forms{&ProcessGroup::all_reduce, &ProcessGroup::all_reduce_async},
      [&](auto&& all_reduce, const TensorOperands& o) {
        return all_reduce(o.out[0].buffer(), ReduceOptions{.op = op, .timeout = timeout});
      });
}

TorchBackend::WorkRef TorchBackend::allreduce_sparse(Tensors& data,
                                                     const c10d::AllreduceOptions& options) {
  const Invalid invalid{"allreduce"};
  check_alike(invalid, data);
  c10d::assertLayoutMatch(invalid, at::kSparse, data, 0);
  c10d::assertCPU(invalid, data);
  if (options.reduceOp.op_ != c10d::ReduceOp::SUM) {
    invalid(
        "unsupported reduction operation (allreduce of sparse tensors only works with "
        "ReduceOp.SUM)");
  }
  const Timeout timeout = resolve(options.timeout);
  if (data.size() > 1) add_into_first(data);
  SparseSum& sparse = this->sparse(timeout);
  const auto start = [&sparse, tensor = data[0], timeout](ProcessGroup&, const TensorOperands&) {
    return sparse.start(tensor, timeout);
  };
  return carry_out(
      {{OpType::_ALLREDUCE_SPARSE, "peal:sparse_all_reduce"}, timeout, options.asyncOp},
      {{}, {}, copies_of(data, 0)},
      [&] { return Results{data}; },
      [&](ProcessGroup& g, const TensorOperands& o) {
        const WorkPtr work = start(g, o);
        try {
          wait_for(*work);
        } catch (const Error& error) {
          if (work->is_completed()) throw;
          const std::string why(error.message());
          for (ProcessGroup* const one : made()) one->abort(why);  // as in other calls
          throw;
        }
      },
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
      Forms{&ProcessGroup::all_reduce, &ProcessGroup::all_reduce_async},
      [&](auto&& all_reduce, const auto&, const auto& out) {
        return all_reduce(out, ReduceOptions{.op = op, .timeout = timeout});
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
      Forms{&ProcessGroup::reduce, &ProcessGroup::reduce_async},
      [&](auto&& reduce, const TensorOperands& o) {
        return reduce(o.out[0].buffer(), root, ReduceOptions{.op = op, .timeout = timeout});
      });
}

// Ignores `device_ids`, which other backends use.
TorchBackend::WorkRef TorchBackend::barrier(const c10d::BarrierOptions& options) {
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::BARRIER, "peal:barrier"}, timeout, options.asyncOp},
      {},
      [] { return Results(); },
      Forms{&ProcessGroup::barrier, &ProcessGroup::barrier_async},
      [&](auto&& barrier, const TensorOperands&) {
        return barrier(CallOptions{.timeout = timeout});
      });
}

}  // namespace peal::python
