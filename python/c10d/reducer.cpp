#include "python/c10d/reducer.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/distributed/c10d/python_comm_hook.h>
#include <torch/csrc/utils/pybind.h>

#include "peal/base/error.h"
#include "peal/train/ddp/gradient_reducer.h"

#include "python/c10d/backend.h"
#include "python/common/errors.h"
#include "python/common/gil.h"
#include "python/common/signals.h"
#include "python/common/waiting.h"

namespace peal::python {
namespace {

namespace py = pybind11;

using train::Average;
using train::BufferSync;
using train::CommunicationHook;
using train::DataParallelOptions;
using train::GradientReducer;
using train::GradientsToAverage;
using train::NamedTensor;

using Names = std::vector<std::pair<std::string, at::Tensor>>;

std::vector<NamedTensor> named(const Names& tensors) {
  std::vector<NamedTensor> list;
  for (const auto& [name, tensor] : tensors) list.emplace_back(name, tensor);
  return list;
}

/// The tensors of a module of Python. Its parameters remain the same objects, as in torch's
/// DistributedDataParallel. Its buffers are listed anew each time, because `Module.to` replaces
/// them.
class TensorsOfPythonModule final : public train::ModelTensors {
 public:
  TensorsOfPythonModule(const Names& parameters, py::object list_buffers)
      : parameters_(named(parameters)), list_buffers_(std::move(list_buffers)) {}
  ~TensorsOfPythonModule() override {
    const py::gil_scoped_acquire gil;
    list_buffers_ = py::object();
  }
  TensorsOfPythonModule(const TensorsOfPythonModule&) = delete;
  TensorsOfPythonModule& operator=(const TensorsOfPythonModule&) = delete;

  std::vector<NamedTensor> parameters() const override { return parameters_; }

  std::vector<NamedTensor> buffers() const override {
    const py::gil_scoped_acquire gil;
    if (list_buffers_.is_none()) return {};
    return named(list_buffers_().cast<Names>());
  }

  void visit_parameters(c10::function_ref<void(const at::Tensor&)> visit) const override {
    for (const NamedTensor& parameter : parameters_) visit(parameter.value());
  }

 private:
  std::vector<NamedTensor> parameters_;
  py::object list_buffers_;
};

/// The Work of an operation that has ended without an error.
class EndedWork final : public Work {
 public:
  void wait(Timeout) override {}
  bool is_completed() const override { return true; }
  void when_completed(std::function<void()> then) override { then(); }
  std::exception_ptr exception() const override { return nullptr; }
  Rank source() const override { return 0; }
};

/// "Tensor", or the name of another type.
std::string type_of(const c10::IValue& value) {
  if (!value.isPyObject()) return value.isTensor() ? "tensor of C++" : value.tagKind();
  const py::gil_scoped_acquire gil;
  PyObject* const object = value.toPyObject();
  return THPVariable_Check(object) ? "Tensor" : Py_TYPE(object)->tp_name;
}

/// Calls a hook of torch's form: hook(state, GradBucket) -> Future[Tensor]. Waits for the future,
/// because some hooks start further collectives in callbacks. At the same time this thread would
/// start those of the next bucket, in an order that may differ between ranks.
class HookOfPython final : public CommunicationHook {
 public:
  HookOfPython(py::object state, py::object hook)
      : hook_(std::make_unique<c10d::PythonCommHook>(std::move(state), std::move(hook))) {}

  WorkPtr start(ProcessGroup&, const GradientsToAverage& bucket, Timeout) override {
    std::vector<std::size_t> offsets, lengths;
    std::vector<c10::IntArrayRef> sizes;
    std::vector<at::Tensor> parameters;
    const auto* const first = static_cast<const std::byte*>(bucket.flat.const_data_ptr());
    for (const GradientsToAverage::Gradient& gradient : bucket.gradients) {
      const auto* const values = static_cast<const std::byte*>(gradient.values.const_data_ptr());
      // There are gaps between gradients.
      offsets.push_back(static_cast<std::size_t>(values - first) / bucket.flat.element_size());
      lengths.push_back(static_cast<std::size_t>(gradient.values.numel()));
      sizes.push_back(gradient.values.sizes());
      parameters.push_back(gradient.parameter);
    }
    const std::size_t count = bucket.index + (bucket.is_last ? 1 : 2);
    c10d::GradBucket for_hook(bucket.index,
                              count,
                              bucket.flat,
                              std::move(offsets),
                              std::move(lengths),
                              std::move(sizes),
                              std::move(parameters),
                              std::nullopt);
    const auto future = hook_->runHook(for_hook);
    future->waitAndThrow();
    const at::Tensor mean = tensor_of(future->value(), bucket.flat);
    const at::NoGradGuard no_grad;
    if (mean.data_ptr() != bucket.flat.data_ptr()) bucket.flat.copy_(mean);
    return std::make_shared<EndedWork>();
  }

 private:
  at::Tensor tensor_of(const c10::IValue& result, const at::Tensor& bucket) const {
    if (const std::string type = type_of(result); type != "Tensor") {
      throw Error(ErrorKind::kUsage,
                  "the future of the communication hook holds a " + type +
                      ": it must hold the tensor of the averaged bucket");
    }
    at::Tensor mean = hook_->parseHookResult(result);
    if (mean.sizes() == bucket.sizes()) return mean;
    throw Error(ErrorKind::kUsage,
                c10::str("the communication hook has returned a tensor of shape ",
                         mean.sizes(),
                         " for a bucket of shape ",
                         bucket.sizes(),
                         ": it must return the averaged bucket"));
  }

  std::unique_ptr<c10d::PythonCommHook> hook_;
};

/// Waits for an operation, and notices Ctrl-C meanwhile.
void wait_for_signals_too(Work& work) {
  interruptible([&] { wait_for(work); });
}

/// Throws the error, or the exception that a signal handler has raised meanwhile, as the exception
/// of torch that leaves backward() with its Python class. torch turns all other C++ exceptions of
/// hooks into RuntimeError.
void raise_in_backward(const std::exception_ptr& cause) {
  const py::gil_scoped_acquire gil;
  const auto raise = [](const py::object& exception) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
    python_error error;
    error.persist();
    throw error;  // NOLINT(misc-throw-by-value-catch-by-reference): torch's own type
  };
  try {
    throw_pending_exception();
    std::rethrow_exception(cause);
  } catch (const py::error_already_set& error) {
    raise(error.value());
  } catch (const Error& error) {
    raise(error_to_python(error));
  }
}

ProcessGroupPtr group_of(const c10::intrusive_ptr<c10d::Backend>& backend) {
  auto* const ours = dynamic_cast<TorchBackend*>(backend.get());
  if (ours != nullptr) return ours->shared_group();
  throw Error(
      ErrorKind::kUnsupported,
      "peal.DistributedDataParallel needs a process group of the backend \"peal\", and this "
      "one is of \"" +
          backend->getBackendName() +
          "\": call torch.distributed.init_process_group(\"peal\"), or pass process_group=");
}

/// Options as Python passes them.
struct Settings {
  std::int64_t bucket_bytes;
  std::int64_t first_bucket_bytes;
  std::string average;
  bool sync_buffers;
  bool init_sync;
  bool static_graph;
};

DataParallelOptions options_of(const Settings& settings) {
  DataParallelOptions options;
  options.bucket_cap = Bytes(settings.bucket_bytes);
  options.first_bucket_cap = Bytes(settings.first_bucket_bytes);
  options.buffers = settings.sync_buffers ? BufferSync::kBroadcast : BufferSync::kNone;
  options.start = settings.init_sync ? train::Start::kBroadcast : train::Start::kAsIs;
  options.wait = wait_for_signals_too;
  options.leave_backward = raise_in_backward;
  options.graph = settings.static_graph ? train::Graph::kStatic : train::Graph::kMayChange;
  for (const auto& [name, average] : {std::pair("mean", Average::kMean),
                                      std::pair("sum", Average::kSum),
                                      std::pair("samples", Average::kBySamples)}) {
    if (settings.average == name) {
      options.average = average;
      return options;
    }
  }
  throw Error(
      ErrorKind::kUsage,
      "average=\"" + settings.average + "\" is unknown: use \"mean\", \"sum\" or \"samples\"");
}

std::unique_ptr<GradientReducer> make_reducer(const c10::intrusive_ptr<c10d::Backend>& backend,
                                              const Names& parameters,
                                              const py::object& list_buffers,
                                              const Settings& settings) {
  auto tensors = std::make_unique<TensorsOfPythonModule>(parameters, list_buffers);
  const DataParallelOptions options = options_of(settings);
  const WithoutGil without_gil;
  return std::make_unique<GradientReducer>(std::move(tensors), group_of(backend), options);
}

}  // namespace

void bind_reducer(py::module_& module) {
  using Sync = GradientReducer::Sync;
  // The destructor waits for operations in flight, which may need the GIL.
  struct WithoutGilDeleter {
    void operator()(GradientReducer* reducer) const {
      const WithoutGil without_gil;
      delete reducer;
    }
  };
  py::class_<GradientReducer, std::unique_ptr<GradientReducer, WithoutGilDeleter>>(module,
                                                                                   "Reducer")
      .def(py::init([](const c10::intrusive_ptr<c10d::Backend>& backend,
                       const Names& parameters,
                       const py::object& list_buffers,
                       std::int64_t bucket_bytes,
                       std::int64_t first_bucket_bytes,
                       const std::string& average,
                       bool sync_buffers,
                       bool init_sync,
                       bool static_graph) {
             return std::unique_ptr<GradientReducer, WithoutGilDeleter>(
                 make_reducer(backend,
                              parameters,
                              list_buffers,
                              {bucket_bytes,
                               first_bucket_bytes,
                               average,
                               sync_buffers,
                               init_sync,
                               static_graph})
                     .release());
           }),
           py::arg("backend"),
           py::arg("parameters"),
           py::arg("list_buffers"),
           py::kw_only(),
           py::arg("bucket_bytes"),
           py::arg("first_bucket_bytes"),
           py::arg("average"),
           py::arg("sync_buffers"),
           py::arg("init_sync"),
           py::arg("static_graph"))
      .def(
          "before_forward",
          [](GradientReducer& reducer, bool sync, std::optional<std::int64_t> samples) {
            if (at::GradMode::is_enabled()) {  // else no backward pass follows
              reducer.set_sync(sync ? Sync::kOn : Sync::kOff);
              if (samples) reducer.set_samples(*samples);
            }
            reducer.before_forward();
          },
          py::arg("sync"),
          py::arg("samples"))
      .def("set_samples", &GradientReducer::set_samples)
      .def("pass_without_data", &GradientReducer::pass_without_data, py::call_guard<WithoutGil>())
      .def("active_ranks", &GradientReducer::active_ranks)
      .def("divide_by_active_ranks",
           [](GradientReducer& reducer, bool yes) {
             using Divisor = GradientReducer::Divisor;
             reducer.set_divisor(yes ? Divisor::kActiveRanks : Divisor::kAllRanks);
           })
      .def("set_static_graph", &GradientReducer::set_static_graph)
      .def(
          "sync_buffers",
          [](GradientReducer& reducer) { reducer.sync_buffers(); },
          py::call_guard<WithoutGil>())
      .def("set_hook", [](GradientReducer& reducer, py::object state, py::object hook) {
        auto made = std::make_shared<HookOfPython>(std::move(state), std::move(hook));
        const WithoutGil without_gil;
        reducer.set_hook(std::move(made));
      });
}

}  // namespace peal::python
