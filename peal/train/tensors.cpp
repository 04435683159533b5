#include "peal/train/tensors.h"

#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/staged.h"

namespace peal::train {
namespace {

using Use = Staged::Use;

/// Runs `operation` on the staged tensors, then finishes them.
template <class Run>
auto run(StagedList list, Run&& operation) {
  if constexpr (std::is_void_v<decltype(operation(list))>) {
    operation(list);
    finish(list);
  } else {
    const auto result = operation(list);
    finish(list);
    return result;
  }
}

/// Starts `operation` on the staged tensors, which its Work finishes.
template <class Start>
WorkPtr start(StagedList list, Start&& operation) {
  WorkPtr work = operation(list);
  return work_on(std::move(list), std::move(work));
}

StagedList one(const Tensor& tensor, Use use) { return staged({tensor}, use); }

/// Inputs first, then outputs.
StagedList both(const Tensors& in, const Tensors& out) {
  StagedList list = staged(in, Use::kRead);
  for (const Tensor& tensor : out) list.emplace_back(tensor, Use::kWrite);
  return list;
}

std::vector<ConstBuffer> inputs(const StagedList& list, const Tensors& in) {
  return const_buffers(StagedList(list.begin(), list.begin() + std::ssize(in)));
}

std::vector<Buffer> outputs(const StagedList& list, const Tensors& out) {
  return buffers(StagedList(list.end() - std::ssize(out), list.end()));
}

}  // namespace

Buffer buffer_of(const Tensor& tensor) {
  const Buffer buffer = Staged(tensor, Use::kRead).buffer();
  if (buffer.data != tensor.data_ptr()) {
    throw Error(ErrorKind::kUsage,
                c10::str("a tensor of strides ",
                         tensor.strides(),
                         " is not one block of memory: call .contiguous() first, or use the "
                         "functions on tensors, which do"));
  }
  return buffer;
}

// ---- point to point -----------------------------------------------------------------------------

void send(ProcessGroup& group, Tensor data, Rank to, Tag tag, Timeout timeout) {
  run(one(data, Use::kRead), [&](auto& list) { group.send(list[0].buffer(), to, tag, timeout); });
}

Rank recv(ProcessGroup& group, Tensor data, Rank from, Tag tag, Timeout timeout) {
  return run(one(data, Use::kWrite),
             [&](auto& list) { return group.recv(list[0].buffer(), from, tag, timeout); });
}

WorkPtr isend(ProcessGroup& group, Tensor data, Rank to, Tag tag, Timeout timeout) {
  return start(one(data, Use::kRead),
               [&](auto& list) { return group.isend(list[0].buffer(), to, tag, timeout); });
}

WorkPtr irecv(ProcessGroup& group, Tensor data, Rank from, Tag tag, Timeout timeout) {
  return start(one(data, Use::kWrite),
               [&](auto& list) { return group.irecv(list[0].buffer(), from, tag, timeout); });
}

// ---- in place -----------------------------------------------------------------------------------

void broadcast(ProcessGroup& group, TensorList data, Rank root, Timeout timeout) {
  run(staged(data, Use::kReadWrite),
      [&](auto& list) { group.broadcast(buffers(list), root, timeout); });
}

WorkPtr broadcast_async(ProcessGroup& group, TensorList data, Rank root, Timeout timeout) {
  return start(staged(data, Use::kReadWrite),
               [&](auto& list) { return group.broadcast_async(buffers(list), root, timeout); });
}

void all_reduce(ProcessGroup& group, TensorList data, ReduceOp op, Timeout timeout) {
  run(staged(data, Use::kReadWrite),
      [&](auto& list) { group.all_reduce(buffers(list), op, timeout); });
}

WorkPtr all_reduce_async(ProcessGroup& group, TensorList data, ReduceOp op, Timeout timeout) {
  return start(staged(data, Use::kReadWrite),
               [&](auto& list) { return group.all_reduce_async(buffers(list), op, timeout); });
}

void reduce(ProcessGroup& group, TensorList data, Rank root, ReduceOp op, Timeout timeout) {
  run(staged(data, Use::kReadWrite),
      [&](auto& list) { group.reduce(buffers(list), root, op, timeout); });
}

WorkPtr reduce_async(
    ProcessGroup& group, TensorList data, Rank root, ReduceOp op, Timeout timeout) {
  return start(staged(data, Use::kReadWrite),
               [&](auto& list) { return group.reduce_async(buffers(list), root, op, timeout); });
}

// ---- a block for each rank ----------------------------------------------------------------------

void all_gather(ProcessGroup& group, Tensor in, Tensor out, Timeout timeout) {
  run(both({in}, {out}),
      [&](auto& list) { group.all_gather(list[0].buffer(), list[1].buffer(), {}, timeout); });
}

void all_gather(ProcessGroup& group, Tensor in, const Tensors& out, Timeout timeout) {
  run(both({in}, out),
      [&](auto& list) { group.all_gather(list[0].buffer(), outputs(list, out), timeout); });
}

WorkPtr all_gather_async(ProcessGroup& group, Tensor in, Tensor out, Timeout timeout) {
  return start(both({in}, {out}), [&](auto& list) {
    return group.all_gather_async(list[0].buffer(), list[1].buffer(), {}, timeout);
  });
}

WorkPtr all_gather_async(ProcessGroup& group, Tensor in, const Tensors& out, Timeout timeout) {
  return start(both({in}, out), [&](auto& list) {
    return group.all_gather_async(list[0].buffer(), outputs(list, out), timeout);
  });
}

void gather(ProcessGroup& group, Tensor in, const Tensors& out, Rank root, Timeout timeout) {
  run(both({in}, out),
      [&](auto& list) { group.gather(list[0].buffer(), outputs(list, out), root, timeout); });
}

WorkPtr gather_async(
    ProcessGroup& group, Tensor in, const Tensors& out, Rank root, Timeout timeout) {
  return start(both({in}, out), [&](auto& list) {
    return group.gather_async(list[0].buffer(), outputs(list, out), root, timeout);
  });
}

void scatter(ProcessGroup& group, const Tensors& in, Tensor out, Rank root, Timeout timeout) {
  run(both(in, {out}),
      [&](auto& list) { group.scatter(inputs(list, in), list.back().buffer(), root, timeout); });
}

WorkPtr scatter_async(
    ProcessGroup& group, const Tensors& in, Tensor out, Rank root, Timeout timeout) {
  return start(both(in, {out}), [&](auto& list) {
    return group.scatter_async(inputs(list, in), list.back().buffer(), root, timeout);
  });
}

void reduce_scatter(ProcessGroup& group, Tensor in, Tensor out, ReduceOp op, Timeout timeout) {
  run(both({in}, {out}), [&](auto& list) {
    group.reduce_scatter(list[0].buffer(), list[1].buffer(), op, {}, timeout);
  });
}

void reduce_scatter(
    ProcessGroup& group, const Tensors& in, Tensor out, ReduceOp op, Timeout timeout) {
  run(both(in, {out}), [&](auto& list) {
    group.reduce_scatter(inputs(list, in), list.back().buffer(), op, timeout);
  });
}

WorkPtr reduce_scatter_async(
    ProcessGroup& group, Tensor in, Tensor out, ReduceOp op, Timeout timeout) {
  return start(both({in}, {out}), [&](auto& list) {
    return group.reduce_scatter_async(list[0].buffer(), list[1].buffer(), op, {}, timeout);
  });
}

WorkPtr reduce_scatter_async(
    ProcessGroup& group, const Tensors& in, Tensor out, ReduceOp op, Timeout timeout) {
  return start(both(in, {out}), [&](auto& list) {
    return group.reduce_scatter_async(inputs(list, in), list.back().buffer(), op, timeout);
  });
}

void all_to_all(ProcessGroup& group, Tensor in, Tensor out, Timeout timeout) {
  run(both({in}, {out}),
      [&](auto& list) { group.all_to_all(list[0].buffer(), list[1].buffer(), {}, {}, timeout); });
}

void all_to_all(ProcessGroup& group, const Tensors& in, const Tensors& out, Timeout timeout) {
  run(both(in, out),
      [&](auto& list) { group.all_to_all(inputs(list, in), outputs(list, out), timeout); });
}

WorkPtr all_to_all_async(ProcessGroup& group, Tensor in, Tensor out, Timeout timeout) {
  return start(both({in}, {out}), [&](auto& list) {
    return group.all_to_all_async(list[0].buffer(), list[1].buffer(), {}, {}, timeout);
  });
}

WorkPtr all_to_all_async(ProcessGroup& group,
                         const Tensors& in,
                         const Tensors& out,
                         Timeout timeout) {
  return start(both(in, out), [&](auto& list) {
    return group.all_to_all_async(inputs(list, in), outputs(list, out), timeout);
  });
}

}  // namespace peal::train
