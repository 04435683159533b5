#include "python/hvd/operations.h"

#include <ATen/DeviceGuard.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <torch/csrc/utils/pybind.h>

#include "peal/base/error.h"
#include "peal/train/horovod/operations.h"
#include "peal/train/horovod/recorded.h"
#include "peal/train/horovod/start.h"

#include "python/common/gil.h"
#include "python/common/signals.h"
#include "python/hvd/arguments.h"
#include "python/hvd/handles.h"

namespace peal::python {
namespace {

namespace py = pybind11;

using hvd::Form;
using hvd::InPlace;
using hvd::OperationOptions;
using hvd::ProcessSet;
using hvd::Reduction;
using hvd::ReductionOptions;
using hvd::Tensors;
using hvd::Waits;
using Returns = Started::Returns;
using Name = std::optional<std::string>;

/// Horovod's numbers.
Reduction reduction_of(int op) {
  constexpr std::array kReductions = {
      hvd::Average, hvd::Sum, hvd::Adasum, hvd::Min, hvd::Max, hvd::Product};
  if (op >= 0 && op < static_cast<int>(kReductions.size())) {
    return kReductions.at(static_cast<std::size_t>(op));
  }
  throw Error(ErrorKind::kUsage, "op is " + std::to_string(op) + ", but goes from 0 to 5");
}

OperationOptions options_of(Name name, int set) {
  return {.name = std::move(name).value_or(std::string()), .process_set = ProcessSet(set)};
}

ReductionOptions options_of(Name name, int op, double prescale, double postscale, int set) {
  ReductionOptions options;
  options.name = std::move(name).value_or(std::string());
  options.op = reduction_of(op);
  options.prescale_factor = prescale;
  options.postscale_factor = postscale;
  options.process_set = ProcessSet(set);
  return options;
}

InPlace in_place_if(bool yes) { return yes ? InPlace::kYes : InPlace::kNo; }

at::Tensor tensor_of(hvd::PendingPtr pending) {
  return std::get<at::Tensor>(wait_for_result({std::move(pending), Returns::kTensor}));
}

Tensors list_of(hvd::PendingPtr pending) {
  return std::get<Tensors>(wait_for_result({std::move(pending), Returns::kList}));
}

std::int64_t handle_of(hvd::PendingPtr pending, Returns returns) {
  return keep_handle({std::move(pending), returns});
}

py::object to_python(Result result) {
  if (auto* const tensor = std::get_if<at::Tensor>(&result)) {
    return tensor->defined() ? py::cast(std::move(*tensor)) : py::none();
  }
  if (auto* const list = std::get_if<Tensors>(&result)) return py::cast(std::move(*list));
  auto& [output, splits] = std::get<Pair>(result);
  return py::make_tuple(std::move(output), std::move(splits));
}

// ---- allreduce

at::Tensor allreduce(const at::Tensor& tensor,
                     bool in_place,
                     Name name,
                     int op,
                     double prescale,
                     double postscale,
                     int set) {
  const ReductionOptions options = options_of(std::move(name), op, prescale, postscale, set);
  if (!in_place && hvd::is_recorded(tensor)) {
    return interruptible([&] { return hvd::allreduce(tensor, options); });
  }
  return tensor_of(
      hvd::start_allreduce(tensor, Form::kOne, in_place_if(in_place), options, Waits::kAtOnce));
}

std::int64_t allreduce_async(const at::Tensor& tensor,
                             bool in_place,
                             Name name,
                             int op,
                             double prescale,
                             double postscale,
                             int set) {
  return handle_of(hvd::start_allreduce(tensor,
                                        Form::kOne,
                                        in_place_if(in_place),
                                        options_of(std::move(name), op, prescale, postscale, set),
                                        Waits::kLater),
                   Returns::kTensor);
}

Tensors grouped_allreduce(const Tensors& tensors,
                          bool in_place,
                          Name name,
                          int op,
                          double prescale,
                          double postscale,
                          int set) {
  const ReductionOptions options = options_of(std::move(name), op, prescale, postscale, set);
  if (!in_place && hvd::is_recorded(tensors)) {
    return interruptible([&] { return hvd::grouped_allreduce(tensors, options); });
  }
  return list_of(
      hvd::start_allreduce(tensors, Form::kGroup, in_place_if(in_place), options, Waits::kAtOnce));
}

std::int64_t grouped_allreduce_async(const Tensors& tensors,
                                     bool in_place,
                                     Name name,
                                     int op,
                                     double prescale,
                                     double postscale,
                                     int set) {
  return handle_of(hvd::start_allreduce(tensors,
                                        Form::kGroup,
                                        in_place_if(in_place),
                                        options_of(std::move(name), op, prescale, postscale, set),
                                        Waits::kLater),
                   Returns::kList);
}

std::int64_t sparse_allreduce_async(const at::Tensor& tensor, Name name, int op, int set) {
  return handle_of(hvd::start_sparse_allreduce(
                       tensor, options_of(std::move(name), op, 1.0, 1.0, set), Waits::kLater),
                   Returns::kTensor);
}

// ---- allgather

at::Tensor allgather(const at::Tensor& tensor, Name name, int set) {
  const OperationOptions options = options_of(std::move(name), set);
  if (hvd::is_recorded(tensor)) {
    return interruptible([&] { return hvd::allgather(tensor, options); });
  }
  return tensor_of(hvd::start_allgather(tensor, Form::kOne, options, Waits::kAtOnce));
}

std::int64_t allgather_async(const at::Tensor& tensor, Name name, int set) {
  return handle_of(
      hvd::start_allgather(tensor, Form::kOne, options_of(std::move(name), set), Waits::kLater),
      Returns::kTensor);
}

Tensors grouped_allgather(const Tensors& tensors, Name name, int set) {
  const OperationOptions options = options_of(std::move(name), set);
  if (hvd::is_recorded(tensors)) {
    return interruptible([&] { return hvd::grouped_allgather(tensors, options); });
  }
  return list_of(hvd::start_allgather(tensors, Form::kGroup, options, Waits::kAtOnce));
}

std::int64_t grouped_allgather_async(const Tensors& tensors, Name name, int set) {
  return handle_of(
      hvd::start_allgather(tensors, Form::kGroup, options_of(std::move(name), set), Waits::kLater),
      Returns::kList);
}

// ---- broadcast

at::Tensor broadcast(const at::Tensor& tensor, bool in_place, Rank root, Name name, int set) {
  const OperationOptions options = options_of(std::move(name), set);
  if (!in_place && hvd::is_recorded(tensor)) {
    return interruptible([&] { return hvd::broadcast(tensor, root, options); });
  }
  return tensor_of(
      hvd::start_broadcast(tensor, in_place_if(in_place), root, options, Waits::kAtOnce));
}

std::int64_t broadcast_async(
    const at::Tensor& tensor, bool in_place, Rank root, Name name, int set) {
  return handle_of(
      hvd::start_broadcast(
          tensor, in_place_if(in_place), root, options_of(std::move(name), set), Waits::kLater),
      Returns::kTensor);
}

// ---- alltoall

std::vector<std::int64_t> splits_of(const std::optional<at::Tensor>& splits) {
  if (!splits) return {};
  if (splits->dim() != 1 || splits->scalar_type() != at::kInt) {
    throw Error(
        ErrorKind::kUsage,
        c10::str("alltoall: the argument `splits` must be a list of integers, or a tensor of "
                 "the type torch.int32 with one dimension, and is a tensor of ",
                 c10::toString(splits->scalar_type()),
                 " with ",
                 splits->dim(),
                 splits->dim() == 1 ? " dimension" : " dimensions",
                 ": pass splits.to(torch.int32)"));
  }
  const at::Tensor wide = splits->to(at::kCPU, at::kLong).contiguous();
  const auto* const first = wide.const_data_ptr<std::int64_t>();
  return {first, first + wide.numel()};
}

std::pair<at::Tensor, at::Tensor> alltoall(const at::Tensor& tensor,
                                           const std::optional<at::Tensor>& splits,
                                           Name name,
                                           int set) {
  const OperationOptions options = options_of(std::move(name), set);
  const std::vector<std::int64_t> rows = splits_of(splits);
  if (hvd::is_recorded(tensor)) {
    auto [output, received] = interruptible([&] { return hvd::alltoall(tensor, rows, options); });
    return {std::move(output), splits ? received.to(splits->device()) : received};
  }
  auto [output, received] =
      std::get<Pair>(wait_for_result({hvd::start_alltoall(tensor, rows, options, Waits::kAtOnce),
                                      Returns::kPair,
                                      at::device_of(splits)}));
  return {std::move(output), std::move(received)};
}

std::int64_t alltoall_async(const at::Tensor& tensor,
                            const std::optional<at::Tensor>& splits,
                            Name name,
                            int set) {
  return keep_handle(
      {hvd::start_alltoall(
           tensor, splits_of(splits), options_of(std::move(name), set), Waits::kLater),
       Returns::kPair,
       at::device_of(splits)});
}

// ---- reducescatter

at::Tensor reducescatter(
    const at::Tensor& tensor, Name name, int op, double prescale, double postscale, int set) {
  const ReductionOptions options = options_of(std::move(name), op, prescale, postscale, set);
  if (hvd::is_recorded(tensor)) {
    return interruptible([&] { return hvd::reducescatter(tensor, options); });
  }
  return tensor_of(hvd::start_reducescatter(tensor, Form::kOne, options, Waits::kAtOnce));
}

std::int64_t reducescatter_async(
    const at::Tensor& tensor, Name name, int op, double prescale, double postscale, int set) {
  return handle_of(
      hvd::start_reducescatter(tensor,
                               Form::kOne,
                               options_of(std::move(name), op, prescale, postscale, set),
                               Waits::kLater),
      Returns::kTensor);
}

Tensors grouped_reducescatter(
    const Tensors& tensors, Name name, int op, double prescale, double postscale, int set) {
  const ReductionOptions options = options_of(std::move(name), op, prescale, postscale, set);
  if (hvd::is_recorded(tensors)) {
    return interruptible([&] { return hvd::grouped_reducescatter(tensors, options); });
  }
  return list_of(hvd::start_reducescatter(tensors, Form::kGroup, options, Waits::kAtOnce));
}

std::int64_t grouped_reducescatter_async(
    const Tensors& tensors, Name name, int op, double prescale, double postscale, int set) {
  return handle_of(
      hvd::start_reducescatter(tensors,
                               Form::kGroup,
                               options_of(std::move(name), op, prescale, postscale, set),
                               Waits::kLater),
      Returns::kList);
}

template <class Type>
using Object = py::object;

/// Adds `function`, which runs without the GIL. Wrong arguments are a ValueError.
template <class Returned, class... Arguments, class... Names>
void define(py::module_& module,
            const char* name,
            Returned (*function)(Arguments...),
            Names... names) {
  module.def(
      name,
      [=](const Object<Arguments>&... given) {
        std::tuple<std::decay_t<Arguments>...> arguments{
            argument<std::decay_t<Arguments>>(given, name, names)...};
        const WithoutGil without_gil;
        return std::apply(function, std::move(arguments));
      },
      py::arg(names)...);
}

}  // namespace

void bind_operations(py::module_& module) {
  const auto define_reduction = [&](const char* name, auto function, const char* first) {
    define(module,
           name,
           function,
           first,
           "in_place",
           "name",
           "op",
           "prescale_factor",
           "postscale_factor",
           "set");
  };
  define_reduction("allreduce", &allreduce, "tensor");
  define_reduction("allreduce_async", &allreduce_async, "tensor");
  define_reduction("grouped_allreduce", &grouped_allreduce, "tensors");
  define_reduction("grouped_allreduce_async", &grouped_allreduce_async, "tensors");
  define(module, "sparse_allreduce_async", &sparse_allreduce_async, "tensor", "name", "op", "set");
  define(module, "allgather", &allgather, "tensor", "name", "set");
  define(module, "allgather_async", &allgather_async, "tensor", "name", "set");
  define(module, "grouped_allgather", &grouped_allgather, "tensors", "name", "set");
  define(module, "grouped_allgather_async", &grouped_allgather_async, "tensors", "name", "set");
  define(module, "broadcast", &broadcast, "tensor", "in_place", "root_rank", "name", "set");
  define(module,
         "broadcast_async",
         &broadcast_async,
         "tensor",
         "in_place",
         "root_rank",
         "name",
         "set");
  define(module, "alltoall", &alltoall, "tensor", "splits", "name", "set");
  define(module, "alltoall_async", &alltoall_async, "tensor", "splits", "name", "set");
  const auto define_scatter = [&](const char* name, auto function, const char* first) {
    define(
        module, name, function, first, "name", "op", "prescale_factor", "postscale_factor", "set");
  };
  define_scatter("reducescatter", &reducescatter, "tensor");
  define_scatter("reducescatter_async", &reducescatter_async, "tensor");
  define_scatter("grouped_reducescatter", &grouped_reducescatter, "tensors");
  define_scatter("grouped_reducescatter_async", &grouped_reducescatter_async, "tensors");
  define(module, "poll", &poll_handle, "handle");
  module.def(
      "synchronize",
      [](const py::object& given) -> py::object {
        const auto handle = argument<std::int64_t>(given, "synchronize", "handle");
        std::optional<Result> result;
        {
          const WithoutGil without_gil;
          result = synchronize_handle(handle);
        }
        return result ? to_python(std::move(*result)) : py::none();
      },
      py::arg("handle"));
  define(
      module, "join", +[] { return interruptible([] { return hvd::join(); }); });
  define(
      module,
      "barrier",
      +[](int set) { interruptible([&] { hvd::barrier(ProcessSet(set)); }); },
      "set");
}

}  // namespace peal::python
