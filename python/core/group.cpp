#include "python/core/group.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "peal/base/error.h"

#include "python/common/errors.h"
#include "python/common/gil.h"
#include "python/common/processes.h"
#include "python/common/signals.h"
#include "python/common/waiting.h"
#include "python/core/docs.h"

namespace peal::python {
namespace {

using Use = Array::Use;

std::vector<Elements> elements_of(const Counts& counts) {
  std::vector<Elements> elements;
  if (counts) {
    for (const std::int64_t count : *counts) elements.emplace_back(count);
  }
  return elements;
}

ReduceOp op_of(const py::object& op) {
  if (py::isinstance<ReduceOp>(op)) return op.cast<ReduceOp>();
  const auto name = py::str(op).cast<std::string>();
  for (const ReduceOp::Kind kind : kAllReduceOpKinds) {
    if (name == name_of(kind) && kind != ReduceOp::Kind::kPremulSum) return {kind};
  }
  throw Error(ErrorKind::kUsage,
              "\"" + name +
                  "\" is no reduction; there are sum, product, min, max, avg, band, bor, "
                  "bxor, and ReduceOp.premul_sum(factor)");
}

[[noreturn]] void refuse_mix(const char* operation) {
  throw Error(ErrorKind::kUsage,
              std::string(operation) + ": this mix of arrays and lists of arrays has no meaning");
}

[[noreturn]] void refuse_counts(const char* operation) {
  throw Error(ErrorKind::kUsage,
              std::string(operation) +
                  ": counts cut one array into blocks; a list's arrays are the "
                  "blocks");
}

}  // namespace

Timeout timeout_of(Seconds seconds) {
  if (!seconds) return kGroupTimeout;
  if (!(*seconds >= 0)) {
    throw Error(ErrorKind::kUsage,
                "a timeout of " + std::to_string(*seconds) + " s: it takes seconds, 0 or more");
  }
  constexpr double kNever = 1e12;
  return Timeout(static_cast<std::int64_t>(std::ceil(std::min(*seconds, kNever) * 1000.0)));
}

// ---- Work

PyWork::PyWork(WorkPtr work, std::vector<Arrays> held)
    : work_(std::move(work)),
      held_(new std::vector<Arrays>(std::move(held)), [](std::vector<Arrays>* arrays) {
        if (Py_IsInitialized() == 0) return;  // they go with the process
        const py::gil_scoped_acquire gil;
        delete arrays;
      }) {}

PyWork::~PyWork() {
  if (!work_ || work_->is_completed()) return;
  work_->when_completed([held = std::move(held_)]() mutable { held.reset(); });
}

void PyWork::wait(Seconds timeout) const {
  const Timeout time = timeout_of(timeout);
  const WithoutGil without_gil;
  interruptible([&] { wait_for(*work_, time); });
}

py::object PyWork::exception() const {
  const std::exception_ptr failure = work_->exception();
  if (!failure) return py::none();
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return error_to_python(error);
  }
}

// ---- ProcessGroup

PyGroup::PyGroup(ProcessGroupPtr group) : group_(std::move(group)), generation_(generation()) {
  enlist(group_);
}

PyGroup::~PyGroup() {
  if (!group_) return;
  if (generation() != generation_) {
    static_cast<void>(new ProcessGroupPtr(std::move(group_)));  // as TorchBackend
    return;
  }
  const WithoutGil without_gil;
  group_.reset();
}

ProcessGroup& PyGroup::get() const {
  if (generation() != generation_) {
    throw Error(ErrorKind::kUsage,
                "this process was forked from one that is in the group " + group_->name() +
                    ", and is not in it itself: call peal.init_process_group here");
  }
  return *group_;
}

template <class Call>
decltype(auto) PyGroup::run(Call&& call) const {
  ProcessGroup& group = get();
  const WithoutGil without_gil;
  return interruptible([&]() -> decltype(auto) { return call(group); });
}

template <class Call>
PyWork PyGroup::start(std::vector<Arrays> held, Call&& call) const {
  return {run(std::forward<Call>(call)), std::move(held)};
}

// ---- what is bound: for each operation the call, blocking or not, that its arguments ask for

namespace {

/// What an operation returns: nothing, or its Work.
template <bool kAsync>
using Result = std::conditional_t<kAsync, PyWork, void>;

/// Runs it and lets go of the arrays, or starts it and keeps them.
template <bool kAsync, class Run, class Start>
Result<kAsync> carry_out(const PyGroup& group, std::vector<Arrays> held, Run run, Start start) {
  if constexpr (kAsync) {
    return group.start(std::move(held), start);
  } else {
    group.run(run);
  }
}

std::vector<Arrays> list_of(Arrays&& a) {
  std::vector<Arrays> list;
  list.push_back(std::move(a));
  return list;
}

std::vector<Arrays> list_of(Arrays&& a, Arrays&& b) {
  std::vector<Arrays> list = list_of(std::move(a));
  list.push_back(std::move(b));
  return list;
}

template <bool kAsync>
Result<kAsync> broadcast(const PyGroup& self, const py::object& data, Rank root, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto all = arrays.buffers();
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      list_of(std::move(arrays)),
      [&](ProcessGroup& g) { g.broadcast(all, root, t); },
      [&](ProcessGroup& g) { return g.broadcast_async(all, root, t); });
}

template <bool kAsync>
Result<kAsync> all_reduce(const PyGroup& self,
                          const py::object& data,
                          const py::object& op,
                          Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto all = arrays.buffers();
  const ReduceOp o = op_of(op);
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      list_of(std::move(arrays)),
      [&](ProcessGroup& g) { g.all_reduce(all, o, t); },
      [&](ProcessGroup& g) { return g.all_reduce_async(all, o, t); });
}

template <bool kAsync>
Result<kAsync> reduce(
    const PyGroup& self, const py::object& data, Rank root, const py::object& op, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const auto all = arrays.buffers();
  const ReduceOp o = op_of(op);
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      list_of(std::move(arrays)),
      [&](ProcessGroup& g) { g.reduce(all, root, o, t); },
      [&](ProcessGroup& g) { return g.reduce_async(all, root, o, t); });
}

/// What a rank that is not the root need not give: None for the one array of the root, an empty
/// list for its list.
Arrays optional_arrays(const py::object& objects, Use use) {
  if (!objects.is_none()) return Arrays(objects, use);
  Arrays none(py::list(), use);
  none.is_list = false;
  return none;
}

const Array& single(const Arrays& arrays, const char* operation) {
  if (arrays.is_list) refuse_mix(operation);
  return arrays.one();
}

/// A root's one array with a block for each rank; elsewhere nothing, of the same type.
template <class AnyBuffer>
AnyBuffer whole(const Arrays& arrays, DType dtype) {
  return arrays.all.empty() ? AnyBuffer(nullptr, Elements(0), dtype)
                            : AnyBuffer(arrays.one().buffer());
}

template <bool kAsync>
Result<kAsync> scatter(const PyGroup& self,
                       const py::object& input,
                       const py::object& output,
                       Rank root,
                       const Counts& counts,
                       Seconds timeout) {
  Arrays from = optional_arrays(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  const Buffer out = single(to, "scatter").buffer();
  const auto n = elements_of(counts);
  const Timeout t = timeout_of(timeout);
  const bool by_rank = from.is_list;
  if (by_rank && counts) refuse_counts("scatter");
  const auto in = from.const_buffers();
  const auto block = whole<ConstBuffer>(from, out.dtype);
  auto held = list_of(std::move(from), std::move(to));
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.scatter(in, out, root, t); },
        [&](ProcessGroup& g) { return g.scatter_async(in, out, root, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.scatter(block, out, root, n, t); },
      [&](ProcessGroup& g) { return g.scatter_async(block, out, root, n, t); });
}

template <bool kAsync>
Result<kAsync> gather(const PyGroup& self,
                      const py::object& input,
                      const py::object& output,
                      Rank root,
                      const Counts& counts,
                      Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to = optional_arrays(output, Use::kWrite);
  const ConstBuffer in = single(from, "gather").buffer();
  const auto n = elements_of(counts);
  const Timeout t = timeout_of(timeout);
  const bool by_rank = to.is_list;
  if (by_rank && counts) refuse_counts("gather");
  const auto out = to.buffers();
  const auto block = whole<Buffer>(to, in.dtype);
  auto held = list_of(std::move(from), std::move(to));
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.gather(in, out, root, t); },
        [&](ProcessGroup& g) { return g.gather_async(in, out, root, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.gather(in, block, root, n, t); },
      [&](ProcessGroup& g) { return g.gather_async(in, block, root, n, t); });
}

/// Three forms: array to array, array to a list of one array for each rank, list to list (several
/// as one operation).
template <bool kAsync>
Result<kAsync> all_gather(const PyGroup& self,
                          const py::object& input,
                          const py::object& output,
                          const Counts& counts,
                          Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  if (from.is_list && !to.is_list) refuse_mix("all_gather");
  const bool several = from.is_list;
  const bool by_rank = to.is_list;
  if (by_rank && counts) refuse_counts("all_gather");
  const auto in = from.const_buffers();
  const auto out = to.buffers();
  const auto n = elements_of(counts);
  const Timeout t = timeout_of(timeout);
  auto held = list_of(std::move(from), std::move(to));
  if (several) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.all_gather(in, out, t); },
        [&](ProcessGroup& g) { return g.all_gather_async(in, out, t); });
  }
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.all_gather(in[0], out, t); },
        [&](ProcessGroup& g) { return g.all_gather_async(in[0], out, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.all_gather(in[0], out[0], n, t); },
      [&](ProcessGroup& g) { return g.all_gather_async(in[0], out[0], n, t); });
}

/// As all_gather, the other way.
template <bool kAsync>
Result<kAsync> reduce_scatter(const PyGroup& self,
                              const py::object& input,
                              const py::object& output,
                              const py::object& op,
                              const Counts& counts,
                              Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  if (to.is_list && !from.is_list) refuse_mix("reduce_scatter");
  const bool several = to.is_list;
  const bool by_rank = from.is_list;
  if (by_rank && counts) refuse_counts("reduce_scatter");
  const auto in = from.const_buffers();
  const auto out = to.buffers();
  const auto n = elements_of(counts);
  const ReduceOp o = op_of(op);
  const Timeout t = timeout_of(timeout);
  auto held = list_of(std::move(from), std::move(to));
  if (several) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.reduce_scatter(in, out, o, t); },
        [&](ProcessGroup& g) { return g.reduce_scatter_async(in, out, o, t); });
  }
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.reduce_scatter(in, out[0], o, t); },
        [&](ProcessGroup& g) { return g.reduce_scatter_async(in, out[0], o, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.reduce_scatter(in[0], out[0], o, n, t); },
      [&](ProcessGroup& g) { return g.reduce_scatter_async(in[0], out[0], o, n, t); });
}

template <bool kAsync>
Result<kAsync> all_to_all(const PyGroup& self,
                          const py::object& input,
                          const py::object& output,
                          const Counts& to_counts,
                          const Counts& from_counts,
                          Seconds timeout) {
  Arrays from(input, Use::kRead);
  Arrays to(output, Use::kWrite);
  if (from.is_list != to.is_list) refuse_mix("all_to_all");
  const bool by_rank = from.is_list;
  if (by_rank && (to_counts || from_counts)) refuse_counts("all_to_all");
  const auto in = from.const_buffers();
  const auto out = to.buffers();
  const auto sent = elements_of(to_counts);
  const auto received = elements_of(from_counts);
  const Timeout t = timeout_of(timeout);
  auto held = list_of(std::move(from), std::move(to));
  if (by_rank) {
    return carry_out<kAsync>(
        self,
        std::move(held),
        [&](ProcessGroup& g) { g.all_to_all(in, out, t); },
        [&](ProcessGroup& g) { return g.all_to_all_async(in, out, t); });
  }
  return carry_out<kAsync>(
      self,
      std::move(held),
      [&](ProcessGroup& g) { g.all_to_all(in[0], out[0], sent, received, t); },
      [&](ProcessGroup& g) { return g.all_to_all_async(in[0], out[0], sent, received, t); });
}

template <bool kAsync>
Result<kAsync> barrier(const PyGroup& self, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  return carry_out<kAsync>(
      self,
      {},
      [&](ProcessGroup& g) { g.barrier(t); },
      [&](ProcessGroup& g) { return g.barrier_async(t); });
}

// ---- between two ranks

void send(const PyGroup& self, const py::object& data, Rank to, std::int32_t tag, Seconds timeout) {
  const Array array(data, Use::kRead);
  const Timeout t = timeout_of(timeout);
  self.run([&](ProcessGroup& g) { g.send(array.buffer(), to, Tag{tag}, t); });
}

Rank recv(
    const PyGroup& self, const py::object& data, Rank source, std::int32_t tag, Seconds timeout) {
  const Array array(data, Use::kWrite);
  const Timeout t = timeout_of(timeout);
  return self.run([&](ProcessGroup& g) { return g.recv(array.buffer(), source, Tag{tag}, t); });
}

PyWork isend(
    const PyGroup& self, const py::object& data, Rank to, std::int32_t tag, Seconds timeout) {
  Arrays arrays(data, Use::kRead);
  const ConstBuffer buffer = single(arrays, "isend").buffer();
  const Timeout t = timeout_of(timeout);
  return self.start(list_of(std::move(arrays)),
                    [&](ProcessGroup& g) { return g.isend(buffer, to, Tag{tag}, t); });
}

PyWork irecv(
    const PyGroup& self, const py::object& data, Rank source, std::int32_t tag, Seconds timeout) {
  Arrays arrays(data, Use::kWrite);
  const Buffer buffer = single(arrays, "irecv").buffer();
  const Timeout t = timeout_of(timeout);
  return self.start(list_of(std::move(arrays)),
                    [&](ProcessGroup& g) { return g.irecv(buffer, source, Tag{tag}, t); });
}

PyWork batch_isend_irecv(const PyGroup& self, const py::iterable& batch, Seconds timeout) {
  std::vector<Arrays> held;
  std::vector<PointToPoint> messages;
  for (const py::handle item : batch) {
    const auto parts = item.cast<py::tuple>();
    if (parts.size() != 3 && parts.size() != 4) {
      throw Error(ErrorKind::kUsage,
                  "batch_isend_irecv takes tuples (\"send\" or \"recv\", array, peer[, tag])");
    }
    const auto what = parts[0].cast<std::string>();
    if (what != "send" && what != "recv") {
      throw Error(ErrorKind::kUsage,
                  "batch_isend_irecv: \"" + what + "\" is neither send nor recv");
    }
    const bool sends = what == "send";
    held.emplace_back(parts[1], sends ? Use::kRead : Use::kWrite);
    PointToPoint message;
    message.kind = sends ? PointToPoint::Kind::kSend : PointToPoint::Kind::kRecv;
    message.buffer = single(held.back(), "batch_isend_irecv").buffer();
    message.peer = parts[2].cast<Rank>();
    if (parts.size() == 4) message.tag = Tag{parts[3].cast<std::int32_t>()};
    messages.push_back(message);
  }
  const Timeout t = timeout_of(timeout);
  return self.start(std::move(held),
                    [&](ProcessGroup& g) { return g.batch_isend_irecv(messages, t); });
}

// ---- the group

PyGroup new_group(const PyGroup& self, const std::vector<Rank>& ranks, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  return PyGroup(self.run([&](ProcessGroup& g) { return g.new_group(ranks, t); }));
}

std::optional<PyGroup> split(const PyGroup& self,
                             std::optional<int> color,
                             int key,
                             Seconds timeout) {
  if (color && *color < 0) {  // kNoColor among them, which is None here
    throw Error(ErrorKind::kUsage,
                "split: the color " + std::to_string(*color) + "; there are 0, 1, ..., and None");
  }
  const Timeout t = timeout_of(timeout);
  ProcessGroupPtr group =
      self.run([&](ProcessGroup& g) { return g.split(color.value_or(kNoColor), key, t); });
  if (!group) return std::nullopt;
  return PyGroup(std::move(group));
}

/// Memory of the group, as a writable buffer of bytes.
struct PyMemory {
  Memory memory;
  std::int64_t size = 0;
};

PyMemory allocate(const PyGroup& self, std::int64_t bytes) {
  return {self.run([&](ProcessGroup& g) { return g.allocate(Bytes(bytes)); }), bytes};
}

/// A `with` block that an exception leaves tells the peers what it was.
void leave(const PyGroup& self,
           const py::object& kind,
           const py::object& value,
           const py::object& traceback) {
  static_cast<void>(traceback);
  std::optional<std::string> what;
  if (!value.is_none()) {
    what = py::str("{}: {}").format(kind.attr("__name__"), py::str(value)).cast<std::string>();
  }
  ProcessGroup& group = self.get();
  const WithoutGil without_gil;
  if (what) {
    group.abort_by_exception(*what);
    try {
      group.destroy();
    } catch (const Error&) {
      // The exception goes on, which says more.
    }
    return;
  }
  interruptible([&] { group.destroy(); });
}

void abort(const PyGroup& self, const std::string& reason) {
  self.run([&](ProcessGroup& g) { g.abort(reason); });
}

void destroy(const PyGroup& self, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  self.run([&](ProcessGroup& g) { g.destroy(t); });
}

void monitored_barrier(const PyGroup& self, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  self.run([&](ProcessGroup& g) { g.monitored_barrier(t); });
}

double timeout_seconds(const PyGroup& self) {
  return static_cast<double>(self.get().timeout().count()) / 1000.0;
}

// ---- binding

using GroupClass = py::class_<PyGroup>;

py::arg_v timeout_argument() { return py::arg("timeout") = py::none(); }

void bind_work(py::module_& module) {
  py::class_<PyWork>(module, "Work", py::is_final(), docs::kWork)
      .def("wait", &PyWork::wait, timeout_argument(), docs::kWorkWait)
      .def("is_completed", &PyWork::is_completed, docs::kWorkIsCompleted)
      .def("exception", &PyWork::exception, docs::kWorkException)
      .def("source", &PyWork::source, docs::kWorkSource);
}

void bind_memory(py::module_& module) {
  py::class_<PyMemory>(module, "Memory", py::is_final(), py::buffer_protocol(), docs::kMemory)
      .def(
          "__len__", [](const PyMemory& memory) { return memory.size; }, "The number of bytes.")
      .def_buffer([](PyMemory& memory) {
        return py::buffer_info(reinterpret_cast<std::uint8_t*>(memory.memory.get()), memory.size);
      });
}

void bind_life(GroupClass& group) {
  const auto timeout = timeout_argument();
  group
      .def_property_readonly(
          "rank", [](const PyGroup& g) { return g.get().rank(); }, docs::kRank)
      .def_property_readonly(
          "size", [](const PyGroup& g) { return g.get().size(); }, docs::kSize)
      .def_property_readonly(
          "name", [](const PyGroup& g) { return g.get().name(); }, docs::kName)
      .def_property_readonly("timeout", &timeout_seconds, docs::kTimeout)
      .def(
          "global_rank",
          [](const PyGroup& g, Rank rank) { return g.get().global_rank(rank); },
          py::arg("rank"),
          docs::kGlobalRank)
      .def("new_group", &new_group, py::arg("ranks"), py::kw_only(), timeout, docs::kNewGroup)
      .def("split",
           &split,
           py::arg("color"),
           py::arg("key") = 0,
           py::kw_only(),
           timeout,
           docs::kSplit)
      .def("allocate", &allocate, py::arg("bytes"), docs::kAllocate)
      .def("abort", &abort, py::arg("reason"), docs::kAbort)
      .def("destroy", &destroy, timeout, docs::kDestroy)
      .def(
          "__enter__", [](py::object self) { return self; }, "The group itself.")
      .def(
          "__exit__", &leave, py::arg("kind"), py::arg("value"), py::arg("traceback"), docs::kExit);
}

void bind_messages(GroupClass& group) {
  const py::kw_only named;
  const auto timeout = timeout_argument();
  const auto data = py::arg("data");
  const auto to = py::arg("to");
  const auto source = py::arg("source") = kAnySource;
  const auto tag = py::arg("tag") = 0;
  group.def("send", &send, data, to, tag, named, timeout, docs::kSend)
      .def("recv", &recv, data, source, tag, named, timeout, docs::kRecv)
      .def("isend", &isend, data, to, tag, named, timeout, docs::kIsend)
      .def("irecv", &irecv, data, source, tag, named, timeout, docs::kIrecv)
      .def("batch_isend_irecv", &batch_isend_irecv, py::arg("batch"), named, timeout, docs::kBatch);
}

/// Binds `name`, which waits, and `name`_async; they take `arguments` and a timeout.
template <class Wait, class Start, class... Arguments>
void bind_both(GroupClass& group,
               const std::string& name,
               Wait wait,
               Start start,
               const char* doc,
               const Arguments&... arguments) {
  const py::kw_only named;
  const auto timeout = timeout_argument();
  const std::string start_doc = name + " without waiting: returns its Work at once.";
  group.def(name.c_str(), wait, arguments..., named, timeout, doc)
      .def((name + "_async").c_str(), start, arguments..., named, timeout, start_doc.c_str());
}

void bind_collectives(GroupClass& group) {
  const auto data = py::arg("data");
  const auto root = py::arg("root");
  const auto op = py::arg("op") = ReduceOp::kSum;
  bind_both(group, "broadcast", &broadcast<false>, &broadcast<true>, docs::kBroadcast, data, root);
  bind_both(group, "all_reduce", &all_reduce<false>, &all_reduce<true>, docs::kAllReduce, data, op);
  bind_both(group, "reduce", &reduce<false>, &reduce<true>, docs::kReduce, data, root, op);
  bind_both(group, "barrier", &barrier<false>, &barrier<true>, docs::kBarrier);
  group.def("monitored_barrier",
            &monitored_barrier,
            py::kw_only(),
            timeout_argument(),
            docs::kMonitoredBarrier);
}

void bind_block_collectives(GroupClass& group) {
  const auto in = py::arg("input");
  const auto out = py::arg("output");
  const auto root = py::arg("root");
  const auto op = py::arg("op") = ReduceOp::kSum;
  const auto counts = py::arg("counts") = py::none();
  const auto to = py::arg("to") = py::none();
  const auto from = py::arg("from_") = py::none();
  bind_both(
      group, "scatter", &scatter<false>, &scatter<true>, docs::kScatter, in, out, root, counts);
  bind_both(group, "gather", &gather<false>, &gather<true>, docs::kGather, in, out, root, counts);
  bind_both(group,
            "all_gather",
            &all_gather<false>,
            &all_gather<true>,
            docs::kAllGather,
            in,
            out,
            counts);
  bind_both(group,
            "reduce_scatter",
            &reduce_scatter<false>,
            &reduce_scatter<true>,
            docs::kReduceScatter,
            in,
            out,
            op,
            counts);
  bind_both(group,
            "all_to_all",
            &all_to_all<false>,
            &all_to_all<true>,
            docs::kAllToAll,
            in,
            out,
            to,
            from);
}

}  // namespace

void bind_group(py::module_& module) {
  bind_work(module);
  bind_memory(module);
  GroupClass group(module, "ProcessGroup", py::is_final(), docs::kProcessGroup);
  bind_life(group);
  bind_messages(group);
  bind_collectives(group);
  bind_block_collectives(group);
}

}  // namespace peal::python
