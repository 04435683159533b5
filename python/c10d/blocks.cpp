// The collectives that give each rank a block.
#include <torch/csrc/distributed/c10d/Utils.hpp>

#include "python/c10d/backend.h"
#include "python/c10d/carry_out.h"

namespace peal::python {

using c10d::OpType;

namespace {

/// Elements for each rank of a tensor that is split along its first dimension. Empty if all ranks
/// get the same number.
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
                     " elements do not match: the large one must have world_size (",
                     size,
                     ") times the elements of the small one"));
  }
}

void check_allgather(const Invalid& invalid,
                     const TorchBackend::TensorLists& out,
                     const TorchBackend::Tensors& in,
                     int rank,
                     int size) {
  c10d::assertNonEmptyInputTensorList(invalid, in.size());
  c10d::assertInputOutputTensorListsSameSize(invalid, out.size(), in.size());
  const std::size_t expected = in.size() * static_cast<std::size_t>(size);
  for (std::size_t list = 0; list < out.size(); ++list) {
    if (out[list].size() == expected) continue;
    invalid(c10::str("invalid output tensor list at index ",
                     list,
                     " (expected length ",
                     expected,
                     ", got ",
                     out[list].size(),
                     ")"));
  }
  if (in.size() > 1) {
    c10d::assertTypeAndSizesMatch(invalid, in, in[0].options(), in[0].sizes());
    for (const auto& list : out) {
      c10d::assertTypeAndSizesMatch(invalid, list, in[0].options(), in[0].sizes());
    }
    return;
  }
  for (std::size_t r = 0; r < expected; ++r) {
    c10d::assertTypeMatch(invalid, in[0].options(), out[0], r);
  }
  // The tensors may differ in size between ranks; gloo rejects that.
  const auto own = static_cast<std::size_t>(rank);
  if (out[0][own].numel() != in[0].numel()) {
    c10d::assertSizesMatch(invalid, in[0].sizes(), out[0], own);
  }
}

/// For allgather_coalesced: `out` receives the tensor at `index` of another rank's list.
void check_alike(const Invalid& invalid,
                 const at::Tensor& out,
                 const at::Tensor& in,
                 std::size_t index) {
  if (out.sizes() != in.sizes()) {
    invalid(c10::str("invalid size of output tensor at index ",
                     index,
                     " (expected length ",
                     c10d::toString(in.sizes()),
                     ", got ",
                     c10d::toString(out.sizes()),
                     ")"));
  }
  if (!in.options().type_equal(out.options())) {
    invalid(c10::str("invalid tensor type at index ",
                     index,
                     " (expected ",
                     in.toString(),
                     ", got ",
                     out.toString(),
                     ")"));
  }
}

}  // namespace

TorchBackend::WorkRef TorchBackend::allgather(TensorLists& out,
                                              Tensors& in,
                                              const c10d::AllgatherOptions& options) {
  check_allgather(Invalid{"allgather"}, out, in, rank_, size_);
  TensorOperands operands = from_to(in, out[0]);
  for (std::size_t list = 1; list < out.size(); ++list) {
    for (std::size_t k = 0; k < out[list].size(); ++k) {
      operands.copies.push_back({out[list][k], out[0][k]});
    }
  }
  return gather_each(
      {{OpType::ALLGATHER, "peal:all_gather"}, resolve(options.timeout), options.asyncOp},
      std::move(operands),
      out);
}

TorchBackend::WorkRef TorchBackend::gather_each(const Asked& asked,
                                                TensorOperands operands,
                                                const TensorLists& results) {
  const std::size_t number = operands.in.size();
  const auto of_all_ranks = [number](const TensorOperands& o, std::size_t k) {
    std::vector<Buffer> buffers;
    for (std::size_t at = k; at < o.out.size(); at += number) buffers.push_back(o.out[at].buffer());
    return buffers;
  };
  return carry_out(
      asked,
      std::move(operands),
      [&] { return results; },
      [&](ProcessGroup& g, const TensorOperands& o) {
        for (std::size_t k = 0; k < number; ++k) {
          g.all_gather(o.in[k].buffer(), of_all_ranks(o, k), {.timeout = asked.timeout});
        }
      },
      [&](ProcessGroup& g, const TensorOperands& o) {
        return start_all(g, number, [&](std::size_t k) {
          return g.all_gather_async(
              o.in[k].buffer(), of_all_ranks(o, k), {.timeout = asked.timeout});
        });
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
      Forms{&ProcessGroup::all_gather, &ProcessGroup::all_gather_async},
      [&](auto&& all_gather, const TensorOperands& o) {
        return all_gather(o.in[0].buffer(), o.out[0].buffer(), BlockOptions{.timeout = timeout});
      });
}

TorchBackend::WorkRef TorchBackend::allgather_coalesced(TensorLists& out,
                                                        Tensors& in,
                                                        const c10d::AllgatherOptions& options) {
  const Invalid invalid{"allgather_coalesced"};
  c10d::assertNonEmpty(invalid, in);
  c10d::assertAllgatherCoalescedOutputTensorLists(invalid, out, in.size(), size_);
  Tensors all;
  for (const Tensors& of_rank : out) {
    for (std::size_t k = 0; k < in.size(); ++k) check_alike(invalid, of_rank[k], in[k], k);
    all.insert(all.end(), of_rank.begin(), of_rank.end());
  }
  return gather_each(
      {{OpType::ALLGATHER_COALESCED, "peal:all_gather"}, resolve(options.timeout), options.asyncOp},
      from_to(in, all),
      out);
}

TorchBackend::WorkRef TorchBackend::allgather_into_tensor_coalesced(
    Tensors& out, Tensors& in, const c10d::AllgatherOptions& options) {
  const Invalid invalid{"allgather_into_tensor_coalesced"};
  c10d::assertNonEmpty(invalid, in);
  c10d::assertInputOutputTensorListsSameSize(invalid, out.size(), in.size());
  for (std::size_t k = 0; k < in.size(); ++k) check_sizes(invalid, out[k], in[k], size_);
  const Timeout timeout = resolve(options.timeout);
  return carry_out_each({{OpType::COALESCED, "peal:all_gather"}, timeout, options.asyncOp},
                        out,
                        in,
                        Forms{&ProcessGroup::all_gather, &ProcessGroup::all_gather_async},
                        [&](auto&& all_gather, const auto& from, const auto& to) {
                          return all_gather(from, to, BlockOptions{.timeout = timeout});
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
    c10d::assertGatherOutputTensorList(invalid, out, size_);
    c10d::assertTypeAndSizesMatch(invalid, out[0], in[0].options(), in[0].sizes());
  } else {
    c10d::assertEmptyOutputTensorList(invalid, out);
  }
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::GATHER, "peal:gather"}, timeout, options.asyncOp},
      from_to(in, out.empty() ? at::TensorList() : at::TensorList(out[0])),
      [&] { return Results(out); },
      Forms{&ProcessGroup::gather, &ProcessGroup::gather_async},
      [&](auto&& gather, const TensorOperands& o) {
        return gather(o.in[0].buffer(), o.outputs(), root, BlockOptions{.timeout = timeout});
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
    c10d::assertScatterInputTensorList(invalid, in, size_);
    c10d::assertTypeAndSizesMatch(invalid, in[0], out[0].options(), out[0].sizes());
  } else {
    c10d::assertEmptyInputTensorList(invalid, in);
  }
  const Timeout timeout = resolve(options.timeout);
  return carry_out(
      {{OpType::SCATTER, "peal:scatter"}, timeout, options.asyncOp},
      from_to(in.empty() ? at::TensorList() : at::TensorList(in[0]), out),
      [&] { return Results{out}; },
      Forms{&ProcessGroup::scatter, &ProcessGroup::scatter_async},
      [&](auto&& scatter, const TensorOperands& o) {
        return scatter(o.inputs(), o.out[0].buffer(), root, BlockOptions{.timeout = timeout});
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
      Forms{&ProcessGroup::reduce_scatter, &ProcessGroup::reduce_scatter_async},
      [&](auto&& reduce_scatter, const TensorOperands& o) {
        return reduce_scatter(
            o.inputs(), o.out[0].buffer(), ReduceScatterOptions{.op = op, .timeout = timeout});
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
      Forms{&ProcessGroup::reduce_scatter, &ProcessGroup::reduce_scatter_async},
      [&](auto&& reduce_scatter, const TensorOperands& o) {
        return reduce_scatter(o.in[0].buffer(),
                              o.out[0].buffer(),
                              ReduceScatterOptions{.op = op, .timeout = timeout});
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
      Forms{&ProcessGroup::reduce_scatter, &ProcessGroup::reduce_scatter_async},
      [&](auto&& reduce_scatter, const auto& from, const auto& to) {
        return reduce_scatter(from, to, ReduceScatterOptions{.op = op, .timeout = timeout});
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
  // One side may have equal splits while the other side has unequal splits.
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
      Forms{&ProcessGroup::all_to_all, &ProcessGroup::all_to_all_async},
      [&](auto&& all_to_all, const TensorOperands& o) {
        return all_to_all(o.in[0].buffer(),
                          o.out[0].buffer(),
                          AllToAllOptions{.to = to, .from = from, .timeout = timeout});
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
      Forms{&ProcessGroup::all_to_all, &ProcessGroup::all_to_all_async},
      [&](auto&& all_to_all, const TensorOperands& o) {
        return all_to_all(o.inputs(), o.outputs(), AllToAllOptions{.timeout = timeout});
      });
}

}  // namespace peal::python
