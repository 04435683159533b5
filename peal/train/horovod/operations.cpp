#include "peal/train/horovod/operations.h"

#include <numeric>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/train/horovod/context.h"
#include "peal/train/horovod/errors.h"
#include "peal/train/horovod/recorded.h"
#include "peal/train/horovod/start.h"

namespace peal::hvd {
namespace {

/// Options of the operation in backward: a given name gets an ending, so that the order of backward
/// does not matter.
template <class Options>
Options for_backward(const Options& options) {
  Options result = options;
  if (!result.name.empty()) result.name += ".gradient";
  return result;
}

OperationOptions plain_options(const ReductionOptions& options) {
  return {.name = options.name, .process_set = options.process_set};
}

ReductionOptions average(const OperationOptions& options) {
  return {.name = options.name, .process_set = options.process_set};
}

Tensors run_allreduce(const Tensors& tensors, Form form, const ReductionOptions& options);

/// `run` on compressed tensors; autograd records the compression.
template <class RunIt>
Tensors compressed(const Tensors& tensors, const ReductionOptions& options, RunIt run) {
  Tensors sent;
  std::vector<c10::IValue> contexts;
  for (const Tensor& tensor : tensors) {
    auto [smaller, context] = options.compression->compress(tensor);
    sent.push_back(std::move(smaller));
    contexts.push_back(std::move(context));
  }
  ReductionOptions plain = options;
  plain.compression = nullptr;
  Tensors results = run(sent, plain);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i] = options.compression->decompress(results[i], contexts[i]);
  }
  return results;
}

Tensors run_allreduce(const Tensors& tensors, Form form, const ReductionOptions& options) {
  const auto run = [form](const Tensors& in, const ReductionOptions& with) {
    return start_allreduce(in, form, InPlace::kNo, with, Waits::kAtOnce)->wait();
  };
  if (!is_recorded(tensors)) return run(tensors, options);
  if (options.compression) {
    return compressed(tensors, options, [form](const Tensors& sent, const ReductionOptions& plain) {
      return run_allreduce(sent, form, plain);
    });
  }
  return recorded(tensors, [=]() -> Run {
    return {run(tensors, options), [=](const Tensors& gradients) {
              return run_allreduce(gradients, form, for_backward(options));
            }};
  });
}

Tensors run_allgather(const Tensors& tensors, Form form, const OperationOptions& options) {
  const auto run = [&] { return start_allgather(tensors, form, options, Waits::kAtOnce); };
  if (!is_recorded(tensors)) return run()->wait();
  return recorded(tensors, [&]() -> Run {
    const PendingPtr pending = run();
    Tensors results = pending->wait();
    struct Slice {
      std::int64_t first, count;
    };
    std::vector<Slice> own;  // of each tensor's rows
    const auto rank = static_cast<std::size_t>(pending->set().rank());
    for (const Pending::Part& part : pending->parts()) {
      own.push_back(
          {std::accumulate(
               part.rows.begin(), part.rows.begin() + pending->set().rank(), std::int64_t{0}),
           part.rows[rank]});
    }
    return {std::move(results), [=](const Tensors& gradients) {
              Tensors all = run_allreduce(gradients, form, average(for_backward(options)));
              for (std::size_t i = 0; i < all.size(); ++i) {
                all[i] = all[i].narrow(0, own[i].first, own[i].count);
              }
              return all;
            }};
  });
}

Tensor run_broadcast(const Tensor& tensor, Rank root, const OperationOptions& options) {
  const auto run = [=] {
    return start_broadcast(tensor, InPlace::kNo, root, options, Waits::kAtOnce)->wait();
  };
  if (!is_recorded(tensor)) return run().front();
  const bool is_root = current()->world()->rank() == root;
  const auto gradient = [=](const Tensors& gradients) {
    Tensors all = run_allreduce(gradients, Form::kOne, average(for_backward(options)));
    if (!is_root) all.front() = torch::zeros_like(all.front());
    return all;
  };
  return recorded(tensor, [=]() -> Run { return {run(), gradient}; }).front();
}

AllToAllResult run_alltoall(const Tensor& tensor,
                            std::span<const std::int64_t> splits,
                            const OperationOptions& options) {
  const auto run = [&] { return start_alltoall(tensor, splits, options, Waits::kAtOnce)->wait(); };
  const auto pair = [](const Tensors& results) { return AllToAllResult{results[0], results[1]}; };
  if (!is_recorded(tensor)) return pair(run());
  return pair(recorded(tensor, [&]() -> Run {
    Tensors results = run();
    const Tensor received = results[1].to(torch::kInt64);
    const std::int64_t rows = tensor.size(0);
    return {std::move(results), [=](const Tensors& gradients) {
              const std::span<const std::int64_t> back(received.const_data_ptr<std::int64_t>(),
                                                       static_cast<std::size_t>(received.numel()));
              Tensor own = run_alltoall(gradients.front(), back, for_backward(options)).output;
              if (own.size(0) < rows) {  // the last rows were not sent
                std::vector<std::int64_t> rest = own.sizes().vec();
                rest.front() = rows - own.size(0);
                own = torch::cat({own, torch::zeros(rest, own.options())});
              }
              return Tensors{own};
            }};
  }));
}

Tensors run_reducescatter(const Tensors& tensors, Form form, const ReductionOptions& options) {
  const auto run = [form](const Tensors& in, const ReductionOptions& with) {
    return start_reducescatter(in, form, with, Waits::kAtOnce)->wait();
  };
  if (!is_recorded(tensors)) return run(tensors, options);
  if (options.compression) {
    return compressed(tensors, options, [form](const Tensors& sent, const ReductionOptions& plain) {
      return run_reducescatter(sent, form, plain);
    });
  }
  return recorded(tensors, [=]() -> Run {
    return {run(tensors, options), [=](const Tensors& gradients) {
              double scale = options.prescale_factor * options.postscale_factor;
              if (options.op == Sum) scale *= options.process_set.size();
              Tensors scaled;
              for (const Tensor& gradient : gradients) scaled.push_back(gradient * scale);
              return run_allgather(scaled, form, for_backward(plain_options(options)));
            }};
  });
}

}  // namespace

// ---- allreduce

Tensor allreduce(const Tensor& tensor, const ReductionOptions& options) {
  if (!is_recorded(tensor)) {
    return start_allreduce(tensor, Form::kOne, InPlace::kNo, options, Waits::kAtOnce)
        ->wait()
        .front();
  }
  return run_allreduce({tensor}, Form::kOne, options).front();
}

Tensor allreduce_(const Tensor& tensor, const ReductionOptions& options) {
  return start_allreduce(tensor, Form::kOne, InPlace::kYes, options, Waits::kAtOnce)
      ->wait()
      .front();
}

Handle<Tensor> allreduce_async(const Tensor& tensor, const ReductionOptions& options) {
  return Handle<Tensor>(start_allreduce(tensor, Form::kOne, InPlace::kNo, options, Waits::kLater));
}

Handle<Tensor> allreduce_async_(const Tensor& tensor, const ReductionOptions& options) {
  return Handle<Tensor>(start_allreduce(tensor, Form::kOne, InPlace::kYes, options, Waits::kLater));
}

Tensors grouped_allreduce(const Tensors& tensors, const ReductionOptions& options) {
  return run_allreduce(tensors, Form::kGroup, options);
}

Tensors grouped_allreduce_(const Tensors& tensors, const ReductionOptions& options) {
  return start_allreduce(tensors, Form::kGroup, InPlace::kYes, options, Waits::kAtOnce)->wait();
}

Handle<Tensors> grouped_allreduce_async(const Tensors& tensors, const ReductionOptions& options) {
  return Handle<Tensors>(
      start_allreduce(tensors, Form::kGroup, InPlace::kNo, options, Waits::kLater));
}

Handle<Tensors> grouped_allreduce_async_(const Tensors& tensors, const ReductionOptions& options) {
  return Handle<Tensors>(
      start_allreduce(tensors, Form::kGroup, InPlace::kYes, options, Waits::kLater));
}

Tensor sparse_allreduce(const Tensor& tensor, const ReductionOptions& options) {
  return start_sparse_allreduce(tensor, options, Waits::kAtOnce)->wait().front();
}

Handle<Tensor> sparse_allreduce_async(const Tensor& tensor, const ReductionOptions& options) {
  return Handle<Tensor>(start_sparse_allreduce(tensor, options, Waits::kLater));
}

// ---- allgather

Tensor allgather(const Tensor& tensor, const OperationOptions& options) {
  return run_allgather({tensor}, Form::kOne, options).front();
}

Handle<Tensor> allgather_async(const Tensor& tensor, const OperationOptions& options) {
  return Handle<Tensor>(start_allgather(tensor, Form::kOne, options, Waits::kLater));
}

Tensors grouped_allgather(const Tensors& tensors, const OperationOptions& options) {
  return run_allgather(tensors, Form::kGroup, options);
}

Handle<Tensors> grouped_allgather_async(const Tensors& tensors, const OperationOptions& options) {
  return Handle<Tensors>(start_allgather(tensors, Form::kGroup, options, Waits::kLater));
}

// ---- broadcast

Tensor broadcast(const Tensor& tensor, Rank root_rank, const OperationOptions& options) {
  return run_broadcast(tensor, root_rank, options);
}

Tensor broadcast_(const Tensor& tensor, Rank root_rank, const OperationOptions& options) {
  return start_broadcast(tensor, InPlace::kYes, root_rank, options, Waits::kAtOnce)->wait().front();
}

Handle<Tensor> broadcast_async(const Tensor& tensor,
                               Rank root_rank,
                               const OperationOptions& options) {
  return Handle<Tensor>(start_broadcast(tensor, InPlace::kNo, root_rank, options, Waits::kLater));
}

Handle<Tensor> broadcast_async_(const Tensor& tensor,
                                Rank root_rank,
                                const OperationOptions& options) {
  return Handle<Tensor>(start_broadcast(tensor, InPlace::kYes, root_rank, options, Waits::kLater));
}

// ---- alltoall, reducescatter

AllToAllResult alltoall(const Tensor& tensor,
                        std::span<const std::int64_t> splits,
                        const OperationOptions& options) {
  return run_alltoall(tensor, splits, options);
}

Handle<AllToAllResult> alltoall_async(const Tensor& tensor,
                                      std::span<const std::int64_t> splits,
                                      const OperationOptions& options) {
  return Handle<AllToAllResult>(start_alltoall(tensor, splits, options, Waits::kLater));
}

Tensor reducescatter(const Tensor& tensor, const ReductionOptions& options) {
  return run_reducescatter({tensor}, Form::kOne, options).front();
}

Handle<Tensor> reducescatter_async(const Tensor& tensor, const ReductionOptions& options) {
  return Handle<Tensor>(start_reducescatter(tensor, Form::kOne, options, Waits::kLater));
}

Tensors grouped_reducescatter(const Tensors& tensors, const ReductionOptions& options) {
  return run_reducescatter(tensors, Form::kGroup, options);
}

Handle<Tensors> grouped_reducescatter_async(const Tensors& tensors,
                                            const ReductionOptions& options) {
  return Handle<Tensors>(start_reducescatter(tensors, Form::kGroup, options, Waits::kLater));
}

// ---- without tensors

void barrier(const ProcessSet& process_set) { start_barrier(process_set, Waits::kAtOnce)->wait(); }

Rank join() {
  const ProcessSetPtr world = current()->world();
  const auto operations = world->operations();
  if (!operations) throw Error(ErrorKind::kUsage, "Horovod has been shut down; use hvd.init().");
  const Rank last = internal_errors([&] { return operations->join(); });
  world->restart_numbers(operations->joins());
  return last;
}

}  // namespace peal::hvd
