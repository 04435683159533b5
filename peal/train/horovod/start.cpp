#include "peal/train/horovod/start.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include <torch/torch.h>

#include "peal/base/error.h"
#include "peal/named/execution.h"
#include "peal/train/horovod/context.h"
#include "peal/train/tensors/element_type.h"

namespace peal::hvd {
namespace {

using named::Kind;
using named::Memory;
using named::Request;

// ---- sets

std::string capitalized(Kind kind) {
  std::string text(name_of(kind));
  text.front() = static_cast<char>(text.front() - 'a' + 'A');
  return text;
}

ProcessSetPtr set_for(Kind kind, const ProcessSet& set) {
  const ContextPtr context = current();
  ProcessSetPtr state = context->set(set.id());
  if (state->included()) return state;
  throw Error(ErrorKind::kUsage,
              c10::str(capitalized(kind),
                       ": Rank ",
                       context->world()->rank(),
                       " is not a member of the provided process set."));
}

// ---- submission

std::shared_ptr<named::NamedOperations> operations_of(const ProcessSetState& set) {
  if (auto operations = set.operations()) return operations;
  throw Error(ErrorKind::kUsage, "Horovod has been shut down; use hvd.init().");
}

/// Submits an operation for each part, in their order.
PendingPtr submit(PendingPtr pending, std::vector<Submission> submissions, Waits waits) {
  if (submissions.empty()) return pending;
  const auto operations = operations_of(pending->set());
  pending->set_operations(operations);
  std::vector<named::OperationPtr> started = operations->submit(std::move(submissions), waits);
  for (std::size_t i = 0; i < started.size(); ++i) {
    pending->parts()[i].operation = std::move(started[i]);
  }
  return pending;
}

/// The same for one part, without lists.
PendingPtr submit(PendingPtr pending, Submission submission, Waits waits) {
  const auto operations = operations_of(pending->set());
  pending->set_operations(operations);
  pending->parts().front().operation = operations->submit(std::move(submission), waits);
  return pending;
}

/// Runs `start` on compressed tensors. The results are decompressed.
template <class Start>
PendingPtr start_compressed(at::TensorList tensors,
                            InPlace in_place,
                            const ReductionOptions& options,
                            Start start) {
  const torch::NoGradGuard no_grad;
  Tensors sent, targets;
  std::vector<c10::IValue> contexts;
  for (const Tensor& tensor : tensors) {
    auto [compressed, context] = options.compression->compress(tensor);
    sent.push_back(std::move(compressed));
    contexts.push_back(std::move(context));
    if (in_place == InPlace::kYes) targets.push_back(tensor);
  }
  ReductionOptions plain = options;
  plain.compression = nullptr;
  PendingPtr pending = start(sent, plain);
  pending->set_assemble([compression = options.compression,
                         contexts = std::move(contexts),
                         targets = std::move(targets)](Tensors results) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i] = compression->decompress(results[i], contexts[i]);
      if (!targets.empty()) results[i] = Tensor(targets[i]).copy_(results[i]);
    }
    return results;
  });
  return pending;
}

// ---- splits of an all-to-all

Error split_error(const std::string& text) { return {ErrorKind::kUsage, "alltoall: " + text}; }

std::vector<std::int64_t> checked_splits(const Tensor& tensor,
                                         std::span<const std::int64_t> splits,
                                         int size) {
  const std::int64_t rows = tensor.size(0);
  if (splits.empty()) {
    if (rows % size != 0) {
      throw split_error(c10::str("the first dimension is ",
                                 rows,
                                 ", which is not divisible by the ",
                                 size,
                                 " ranks: pass splits"));
    }
    return std::vector<std::int64_t>(static_cast<std::size_t>(size), rows / size);
  }
  if (splits.size() != static_cast<std::size_t>(size)) {
    throw split_error(
        c10::str("there are ", splits.size(), " splits for ", size, " ranks: give one for each"));
  }
  std::int64_t sum = 0;
  for (const std::int64_t split : splits) {
    if (split < 0) throw split_error(c10::str("the split ", split, " is negative"));
    sum += split;
  }
  if (sum > rows) {
    throw split_error(
        c10::str("the splits add up to ", sum, ", but the tensor has only ", rows, " rows"));
  }
  return {splits.begin(), splits.end()};
}

/// The rows of a reduce-scatter for the rank: the first ranks have one more.
std::int64_t own_rows(std::int64_t rows, const ProcessSetState& set) {
  return rows / set.size() + (set.rank() < rows % set.size() ? 1 : 0);
}

/// In the type of `values`; integers as in the reduction of dense tensors.
Tensor scaled(const Tensor& values, double scale, int divisor) {
  const bool is_integral = at::isIntegralType(values.scalar_type(), /*includeBool=*/true);
  Tensor result = values;
  if (scale != 1.0) {
    result =
        is_integral ? (values.to(at::kDouble) * scale).to(values.scalar_type()) : values * scale;
  }
  if (divisor == 1) return result;
  return is_integral ? torch::div(result, divisor, "trunc") : result / divisor;
}

}  // namespace

PendingPtr start_allreduce(at::TensorList tensors,
                           Form form,
                           InPlace in_place,
                           const ReductionOptions& options,
                           Waits waits) {
  if (options.compression) {
    const auto start = [&](const Tensors& sent, const ReductionOptions& plain) {
      return start_allreduce(sent, form, InPlace::kNo, plain, waits);
    };
    return start_compressed(tensors, in_place, options, start);
  }
  const torch::NoGradGuard no_grad;
  PendingPtr pending = make_pending(set_for(Kind::kAllReduce, options.process_set));
  const auto submission_of = [&](const Tensor& tensor) {
    const Pending::Part& part = pending->parts().emplace_back(part_in_place(tensor, in_place));
    return Submission{reduction_of(Kind::kAllReduce, part.dense, options), memory_in_place(part)};
  };
  Name name = full_name(Kind::kAllReduce, form, options.name, pending->set());
  if (form == Form::kOne) {
    Submission one = submission_of(tensors.front());
    set_name(one.request, std::move(name));
    return submit(std::move(pending), std::move(one), waits);
  }
  std::vector<Submission> submissions;
  for (const Tensor& tensor : tensors) submissions.push_back(submission_of(tensor));
  set_names(submissions, form, std::move(name));
  return submit(std::move(pending), std::move(submissions), waits);
}

PendingPtr start_allgather(at::TensorList tensors,
                           Form form,
                           const OperationOptions& options,
                           Waits waits) {
  const torch::NoGradGuard no_grad;
  PendingPtr pending = make_pending(set_for(Kind::kAllGather, options.process_set));
  pending->parts().reserve(tensors.size());  // operations refer to the parts
  std::vector<Submission> submissions;
  for (const Tensor& tensor : tensors) {
    Pending::Part& part = pending->parts().emplace_back(part_with_input(tensor, Kind::kAllGather));
    submissions.push_back({request_of(Kind::kAllGather, part.input), gathering_memory(part)});
  }
  set_names(submissions, form, full_name(Kind::kAllGather, form, options.name, pending->set()));
  return submit(std::move(pending), std::move(submissions), waits);
}

PendingPtr start_broadcast(const Tensor& tensor,
                           InPlace in_place,
                           Rank root,
                           const OperationOptions& options,
                           Waits waits) {
  const torch::NoGradGuard no_grad;
  PendingPtr pending = make_pending(set_for(Kind::kBroadcast, options.process_set));
  const Rank root_in_set = pending->set().rank_of_global(root);
  if (root_in_set < 0) {
    throw Error(ErrorKind::kUsage,
                c10::str("broadcast: the root rank ", root, " is not in the process set"));
  }
  const Pending::Part& part = pending->parts().emplace_back(part_in_place(tensor, in_place));
  Request request = request_of(Kind::kBroadcast, part.dense);
  request.root = root_in_set;
  set_name(request, full_name(Kind::kBroadcast, Form::kOne, options.name, pending->set()));
  return submit(std::move(pending), Submission{std::move(request), memory_in_place(part)}, waits);
}

PendingPtr start_alltoall(const Tensor& tensor,
                          std::span<const std::int64_t> splits,
                          const OperationOptions& options,
                          Waits waits) {
  const torch::NoGradGuard no_grad;
  PendingPtr pending = make_pending(set_for(Kind::kAllToAll, options.process_set));
  Pending::Part& part = pending->parts().emplace_back(part_with_input(tensor, Kind::kAllToAll));
  std::vector<std::int64_t> sent = checked_splits(tensor, splits, pending->set().size());
  part.input = part.input.narrow(0, 0, std::accumulate(sent.begin(), sent.end(), std::int64_t{0}));
  Memory memory = gathering_memory(part);
  memory.splits = std::move(sent);
  pending->set_assemble([&part](Tensors results) {
    Tensor splits_of_others = torch::tensor(part.rows, torch::kInt64).to(torch::kInt32);
    results.push_back(std::move(splits_of_others));
    return results;
  });
  Request request = request_of(Kind::kAllToAll, part.input);
  set_name(request, full_name(Kind::kAllToAll, Form::kOne, options.name, pending->set()));
  return submit(std::move(pending), Submission{std::move(request), std::move(memory)}, waits);
}

PendingPtr start_reducescatter(at::TensorList tensors,
                               Form form,
                               const ReductionOptions& options,
                               Waits waits) {
  if (options.compression) {
    const auto start = [&](const Tensors& sent, const ReductionOptions& plain) {
      return start_reducescatter(sent, form, plain, waits);
    };
    return start_compressed(tensors, InPlace::kNo, options, start);
  }
  const torch::NoGradGuard no_grad;
  PendingPtr pending = make_pending(set_for(Kind::kReduceScatter, options.process_set));
  std::vector<Submission> submissions;
  for (const Tensor& tensor : tensors) {
    Pending::Part& part =
        pending->parts().emplace_back(part_with_input(tensor, Kind::kReduceScatter));
    if (options.prescale_factor != 1.0 && part.input.is_same(tensor)) {
      part.input = part.input.clone();  // the operation scales it in place
    }
    part.dense = rows_like(part.input, own_rows(tensor.size(0), pending->set()));
    submissions.push_back(
        {reduction_of(Kind::kReduceScatter, part.input, options), scattering_memory(part)});
  }
  set_names(submissions, form, full_name(Kind::kReduceScatter, form, options.name, pending->set()));
  return submit(std::move(pending), std::move(submissions), waits);
}

PendingPtr start_sparse_allreduce(const Tensor& tensor,
                                  const ReductionOptions& options,
                                  Waits waits) {
  if (!tensor.defined() || !tensor.is_sparse()) {
    throw Error(ErrorKind::kUsage, "sparse_allreduce needs a sparse tensor: use allreduce");
  }
  if (options.op != Average && options.op != Sum) {
    throw Error(ErrorKind::kUnsupported, "sparse_allreduce computes Average and Sum only");
  }
  if (!named::has_meaning(options.op, train::element_type(tensor.scalar_type()))) {
    throw Error(ErrorKind::kUnsupported,
                c10::str("sparse_allreduce: Average has no meaning for ", tensor.scalar_type()));
  }
  const torch::NoGradGuard no_grad;
  const Tensor mine = tensor.coalesce();
  PendingPtr pending = make_pending(set_for(Kind::kAllGather, options.process_set));
  pending->parts().reserve(2);  // operations refer to the parts
  const Name name = full_name(Kind::kAllGather, Form::kOne, options.name, pending->set());
  std::vector<Submission> submissions;
  // A row for each entry.
  for (const auto& [what, rows] : {std::pair(".indices", mine.indices().t().contiguous()),
                                   std::pair(".values", mine.values().contiguous())}) {
    Pending::Part& part = pending->parts().emplace_back(part_with_input(rows, Kind::kAllGather));
    Request request = request_of(Kind::kAllGather, part.input);
    set_name(request, {name.text + what, name.is_given});
    request.group = name.text;
    request.group_size = 2;
    submissions.push_back({std::move(request), gathering_memory(part)});
  }
  const double scale = options.prescale_factor * options.postscale_factor;
  const int divisor = options.op == Average ? pending->set().size() : 1;
  pending->set_assemble([sizes = tensor.sizes().vec(), scale, divisor](const Tensors& gathered) {
    const Tensor sum = torch::sparse_coo_tensor(gathered[0].t(), gathered[1], sizes).coalesce();
    const Tensor values = scaled(sum.values(), scale, divisor);
    return Tensors{torch::sparse_coo_tensor(sum.indices(), values, sizes)._coalesced_(true)};
  });
  return submit(std::move(pending), std::move(submissions), waits);
}

PendingPtr start_barrier(const ProcessSet& set, Waits waits) {
  PendingPtr pending = make_pending(set_for(Kind::kBarrier, set));
  pending->parts().emplace_back();
  Request request;
  request.kind = Kind::kBarrier;
  set_name(request, full_name(Kind::kBarrier, Form::kOne, {}, pending->set()));
  return submit(std::move(pending), Submission{std::move(request), {}}, waits);
}

}  // namespace peal::hvd
