#include "python/core/group.h"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "peal/base/error.h"
#include "peal/system/per_process.h"

#include "python/common/errors.h"
#include "python/common/gil.h"
#include "python/common/leaving.h"
#include "python/common/processes.h"
#include "python/common/raised.h"
#include "python/common/signals.h"
#include "python/common/waiting.h"
#include "python/core/docs.h"
#include "python/core/operations.h"

namespace peal::python {

Timeout timeout_of(Seconds seconds) {
  if (!seconds) return kGroupTimeout;
  if (!(*seconds >= 0)) {
    throw Error(ErrorKind::kUsage,
                "a timeout of " + std::to_string(*seconds) +
                    " s is not valid: pass a number of seconds, 0 or more");
  }
  constexpr double kNever = 1e12;
  return Timeout(static_cast<std::int64_t>(std::ceil(std::min(*seconds, kNever) * 1000.0)));
}

// ---- Work

PyWork::PyWork(WorkPtr work, std::vector<Arrays> held)
    : work_(std::move(work)),
      held_(new std::vector<Arrays>(std::move(held)), [](std::vector<Arrays>* arrays) {
        // peal's threads have ended before the interpreter finalizes (leave_all).
        if (Py_IsInitialized() == 0) return;  // the arrays are freed with the process
        const py::gil_scoped_acquire gil;
        delete arrays;
      }) {}

PyWork::~PyWork() {
  if (!work_ || work_->is_completed()) return;
  keep_until_completed(*work_, [held = std::move(held_)]() mutable { held.reset(); });
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

PyGroup::~PyGroup() { release_object(std::move(group_), generation_); }

ProcessGroup& PyGroup::get() const {
  check_not_forked(generation_, group_->name(), "peal.init_process_group");
  return *group_;
}

bool PyGroup::is_of_parent() const { return generation() != generation_; }

// ---- arguments

ReduceOp op_of(const py::object& op) {
  if (py::isinstance<ReduceOp>(op)) return op.cast<ReduceOp>();
  const auto name = py::str(op).cast<std::string>();
  for (const ReduceOp::Kind kind : kAllReduceOpKinds) {
    if (name == name_of(kind) && kind != ReduceOp::Kind::kPremulSum) return {kind};
  }
  throw Error(ErrorKind::kUsage,
              "\"" + name +
                  "\" is not a reduction: use sum, product, min, max, avg, band, bor, bxor or "
                  "ReduceOp.premul_sum(factor)");
}

const Array& single(const Arrays& arrays, const char* operation) {
  if (arrays.form == BufferForm::kList) {
    throw Error(ErrorKind::kUsage,
                std::string(operation) + ": found a list for an argument that takes one array");
  }
  return arrays.one();
}

// ---- functions that are bound

namespace {

PyGroup new_group(const PyGroup& self, const std::vector<Rank>& ranks, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  return PyGroup(self.run([&](ProcessGroup& g) { return g.new_group(ranks, t); }));
}

std::optional<PyGroup> split(const PyGroup& self,
                             std::optional<int> color,
                             int key,
                             Seconds timeout) {
  if (color && *color < 0) {  // also kNoColor: Python passes None instead
    throw Error(
        ErrorKind::kUsage,
        "split: the color " + std::to_string(*color) + " is not valid: pass 0, 1, ... or None");
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

/// Ends a `with` block. If an exception leaves the block, the peers receive its text first.
void leave(const PyGroup& self,
           const py::object& kind,
           const py::object& value,
           const py::object& traceback) {
  static_cast<void>(kind);
  static_cast<void>(traceback);
  if (self.is_of_parent()) return;
  const Raised raised = describe_raised(value);
  ProcessGroup& group = self.get();
  const WithoutGil without_gil;
  const NormalLeave leaving;
  if (raised.words) group.abort_by_exception(*raised.words);
  if (raised.words || raised.is_failed_exit) return leave_in_haste(group);
  check_may_wait_for_threads("the end of a `with` block");
  interruptible([&] { group.destroy(); });
}

void abort(const PyGroup& self, const std::string& reason) {
  self.run([&](ProcessGroup& g) { g.abort(reason); });
}

void destroy(const PyGroup& self, Seconds timeout) {
  const Timeout t = timeout_of(timeout);
  check_may_wait_for_threads("destroy");
  self.run([&](ProcessGroup& g) {
    const NormalLeave leaving;
    g.destroy(t);
  });
}

double timeout_seconds(const PyGroup& self) {
  return static_cast<double>(self.get().timeout().count()) / 1000.0;
}

std::string description(const PyGroup& self) {
  const ProcessGroup& group = self.known();
  return "<peal.ProcessGroup " + group.name() + ": rank " + std::to_string(group.rank()) + " of " +
         std::to_string(group.size()) + ">";
}

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
          "rank", [](const PyGroup& g) { return g.known().rank(); }, docs::kRank)
      .def_property_readonly(
          "size", [](const PyGroup& g) { return g.known().size(); }, docs::kSize)
      .def_property_readonly(
          "name", [](const PyGroup& g) { return g.known().name(); }, docs::kName)
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
      .def("__repr__", &description)
      .def(
          "__enter__", [](py::object self) { return self; }, "The group itself.")
      .def(
          "__exit__", &leave, py::arg("kind"), py::arg("value"), py::arg("traceback"), docs::kExit);
}

}  // namespace

void bind_group(py::module_& module) {
  bind_work(module);
  bind_memory(module);
  GroupClass group(module, "ProcessGroup", py::is_final(), docs::kProcessGroup);
  bind_life(group);
  bind_messages(group);
  bind_collectives(group);
  bind_blocks(group);
}

}  // namespace peal::python
