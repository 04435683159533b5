// The operations of all ranks on whole tensors.
#include <string>

#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "peal/base/error.h"

#include "python/c10d/backend.h"
#include "python/c10d/carry_out.h"
#include "python/common/waiting.h"

namespace peal::python {

using c10d::OpType;

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
  registrations_.see(group(), data[0]);
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
  SparseSum& sparse = this->sparse(timeout);
  const auto start = [&sparse, tensor = data[0], timeout](ProcessGroup&, const Operands&) {
    return sparse.start(tensor, timeout);
  };
  return carry_out(
      {{OpType::_ALLREDUCE_SPARSE, "peal:sparse_all_reduce"}, timeout, options.asyncOp},
      {},
      [&] { return Results{data}; },
      [&](ProcessGroup& g, const Operands& o) {
        const WorkPtr work = start(g, o);
        try {
          wait_for(*work);
        } catch (const Error& error) {
          if (work->is_completed()) throw;
          const std::string why(error.message());
          for (ProcessGroup* const one : made()) one->abort(why);  // as other calls do
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

}  // namespace peal::python
