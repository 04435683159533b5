#include "peal/train/tensors/tensors.h"

#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/tensors/element_type.h"
#include "peal/train/tensors/staged.h"

namespace peal::train {
namespace {

using Use = Staged::Use;

/// The staged tensors of a call, as arguments for the operations of ProcessGroup.
class Arguments {
 public:
  Arguments(const TensorList& in, const TensorList& out, Use use_of_out = Use::kWrite)
      : staged_(staged(in.all(), Use::kRead)), in_(const_buffers(staged_)), in_form_(in.form()) {
    add(out, use_of_out);
  }
  /// For an operation in place.
  explicit Arguments(const TensorList& data) { add(data, Use::kReadWrite); }

  ConstBuffers in() const { return {in_, in_form_}; }
  Buffers out() const { return {out_, out_form_}; }
  StagedList& staged_list() { return staged_; }

 private:
  void add(const TensorList& tensors, Use use) {
    const StagedList list = staged(tensors.all(), use);
    out_ = buffers(list);
    out_form_ = tensors.form();
    staged_.insert(staged_.end(), list.begin(), list.end());
  }

  StagedList staged_;
  std::vector<ConstBuffer> in_;
  std::vector<Buffer> out_;
  BufferForm in_form_ = BufferForm::kList;
  BufferForm out_form_ = BufferForm::kList;
};

/// Runs `operation` on the staged tensors, then finishes the tensors.
template <class Run>
auto run(Arguments arguments, Run&& operation) {
  if constexpr (std::is_void_v<decltype(operation(arguments))>) {
    operation(arguments);
    finish(arguments.staged_list());
  } else {
    const auto result = operation(arguments);
    finish(arguments.staged_list());
    return result;
  }
}

/// Starts `operation` on the staged tensors; its Work finishes the tensors.
template <class Start>
WorkPtr start(Arguments arguments, Start&& operation) {
  WorkPtr work = operation(arguments);
  return work_on(std::move(arguments.staged_list()), std::move(work));
}

/// Only the root's tensors receive the result. Those of other ranks keep their values.
Use use_of_gathered(const ProcessGroup& group, Rank root) {
  return group.rank() == root ? Use::kWrite : Use::kRead;
}

}  // namespace

Tensor allocate_tensor(ProcessGroup& group, torch::IntArrayRef sizes, torch::ScalarType type) {
  const Elements count(c10::multiply_integers(sizes));
  const Memory memory = group.allocate(bytes_of(count, element_type(type)));
  return torch::from_blob(
      memory.get(), sizes, [memory](void*) {}, torch::dtype(type));
}

Buffer buffer_of(const Tensor& tensor) {
  const Buffer buffer = Staged(tensor, Use::kRead).buffer();
  if (buffer.data != tensor.data_ptr()) {
    throw Error(ErrorKind::kUsage,
                c10::str("a tensor of strides ",
                         tensor.strides(),
                         " on ",
                         tensor.device(),
                         " is not one block of memory on the CPU: call .cpu().contiguous() first, "
                         "or use the functions on tensors, which copy it"));
  }
  return buffer;
}

// ---- point to point

void send(ProcessGroup& group, const Tensor& data, Rank to, const MessageOptions& options) {
  run(Arguments(data, {}),
      [&](const Arguments& a) { return group.send(a.in().one(), to, options); });
}

WorkPtr isend(ProcessGroup& group, const Tensor& data, Rank to, const MessageOptions& options) {
  return start(Arguments(data, {}),
               [&](const Arguments& a) { return group.isend(a.in().one(), to, options); });
}

Rank recv(ProcessGroup& group, const Tensor& data, Rank from, const MessageOptions& options) {
  return run(Arguments({}, data),
             [&](const Arguments& a) { return group.recv(a.out().one(), from, options); });
}

WorkPtr irecv(ProcessGroup& group, const Tensor& data, Rank from, const MessageOptions& options) {
  return start(Arguments({}, data),
               [&](const Arguments& a) { return group.irecv(a.out().one(), from, options); });
}

// ---- in place

void broadcast(ProcessGroup& group, const TensorList& data, Rank root, const CallOptions& options) {
  run(Arguments(data), [&](const Arguments& a) { return group.broadcast(a.out(), root, options); });
}

WorkPtr broadcast_async(ProcessGroup& group,
                        const TensorList& data,
                        Rank root,
                        const CallOptions& options) {
  return start(Arguments(data),
               [&](const Arguments& a) { return group.broadcast_async(a.out(), root, options); });
}

void all_reduce(ProcessGroup& group, const TensorList& data, const ReduceOptions& options) {
  run(Arguments(data), [&](const Arguments& a) { return group.all_reduce(a.out(), options); });
}

WorkPtr all_reduce_async(ProcessGroup& group,
                         const TensorList& data,
                         const ReduceOptions& options) {
  return start(Arguments(data),
               [&](const Arguments& a) { return group.all_reduce_async(a.out(), options); });
}

void reduce(ProcessGroup& group, const TensorList& data, Rank root, const ReduceOptions& options) {
  run(Arguments(data), [&](const Arguments& a) { return group.reduce(a.out(), root, options); });
}

WorkPtr reduce_async(ProcessGroup& group,
                     const TensorList& data,
                     Rank root,
                     const ReduceOptions& options) {
  return start(Arguments(data),
               [&](const Arguments& a) { return group.reduce_async(a.out(), root, options); });
}

// ---- a block for each rank

void scatter(ProcessGroup& group,
             const TensorList& in,
             const Tensor& out,
             Rank root,
             const BlockOptions& options) {
  run(Arguments(in, out),
      [&](const Arguments& a) { return group.scatter(a.in(), a.out().one(), root, options); });
}

WorkPtr scatter_async(ProcessGroup& group,
                      const TensorList& in,
                      const Tensor& out,
                      Rank root,
                      const BlockOptions& options) {
  return start(Arguments(in, out), [&](const Arguments& a) {
    return group.scatter_async(a.in(), a.out().one(), root, options);
  });
}

void gather(ProcessGroup& group,
            const Tensor& in,
            const TensorList& out,
            Rank root,
            const BlockOptions& options) {
  run(Arguments(in, out, use_of_gathered(group, root)),
      [&](const Arguments& a) { return group.gather(a.in().one(), a.out(), root, options); });
}

WorkPtr gather_async(ProcessGroup& group,
                     const Tensor& in,
                     const TensorList& out,
                     Rank root,
                     const BlockOptions& options) {
  return start(Arguments(in, out, use_of_gathered(group, root)), [&](const Arguments& a) {
    return group.gather_async(a.in().one(), a.out(), root, options);
  });
}

void all_gather(ProcessGroup& group,
                const TensorList& in,
                const TensorList& out,
                const BlockOptions& options) {
  run(Arguments(in, out),
      [&](const Arguments& a) { return group.all_gather(a.in(), a.out(), options); });
}

WorkPtr all_gather_async(ProcessGroup& group,
                         const TensorList& in,
                         const TensorList& out,
                         const BlockOptions& options) {
  return start(Arguments(in, out), [&](const Arguments& a) {
    return group.all_gather_async(a.in(), a.out(), options);
  });
}

void reduce_scatter(ProcessGroup& group,
                    const TensorList& in,
                    const TensorList& out,
                    const ReduceScatterOptions& options) {
  run(Arguments(in, out),
      [&](const Arguments& a) { return group.reduce_scatter(a.in(), a.out(), options); });
}

WorkPtr reduce_scatter_async(ProcessGroup& group,
                             const TensorList& in,
                             const TensorList& out,
                             const ReduceScatterOptions& options) {
  return start(Arguments(in, out), [&](const Arguments& a) {
    return group.reduce_scatter_async(a.in(), a.out(), options);
  });
}

void all_to_all(ProcessGroup& group,
                const TensorList& in,
                const TensorList& out,
                const AllToAllOptions& options) {
  run(Arguments(in, out),
      [&](const Arguments& a) { return group.all_to_all(a.in(), a.out(), options); });
}

WorkPtr all_to_all_async(ProcessGroup& group,
                         const TensorList& in,
                         const TensorList& out,
                         const AllToAllOptions& options) {
  return start(Arguments(in, out), [&](const Arguments& a) {
    return group.all_to_all_async(a.in(), a.out(), options);
  });
}

}  // namespace peal::train
