// peal._hvd: Horovod's operations for peal/horovod. The signatures are in peal/_hvd.pyi.
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/csrc/utils/pybind.h>

#include "peal/base/error.h"
#include "peal/system/per_process.h"
#include "peal/train/horovod/context.h"
#include "peal/train/horovod/elastic_rounds.h"
#include "peal/train/horovod/init.h"
#include "peal/train/horovod/process_set.h"

#include "python/common/gil.h"
#include "python/common/leaving.h"
#include "python/common/reports.h"
#include "python/common/signals.h"
#include "python/hvd/errors.h"
#include "python/hvd/handles.h"
#include "python/hvd/operations.h"

namespace peal::python {
namespace {

namespace py = pybind11;

/// A function of Python as one of C++. Never released, because the interpreter may have ended.
std::function<std::string()> as_function(const py::object& callable) {
  if (callable.is_none()) return {};
  PyObject* const kept = Py_NewRef(callable.ptr());
  return [kept]() -> std::string {
    std::string text;
    call_unless_ended([&] {
      const py::gil_scoped_acquire gil;
      PyObject* const result = PyObject_CallNoArgs(kept);
      const char* const bytes = result != nullptr ? PyUnicode_AsUTF8(result) : nullptr;
      if (bytes != nullptr) text = bytes;
      Py_XDECREF(result);
      PyErr_Clear();
    });
    return text;
  };
}

void end() {
  forget_handles();
  hvd::shutdown();
}

void init(const std::optional<std::vector<Rank>>& ranks,
          const std::vector<std::vector<Rank>>& process_sets,
          bool dynamic,
          bool all_while_joined,
          const py::object& whereabouts) {
  hvd::InitOptions options;
  options.ranks = ranks.value_or(std::vector<Rank>());
  options.process_sets = process_sets;
  using ProcessSets = hvd::InitOptions::ProcessSets;
  options.mode = dynamic ? ProcessSets::kDynamic : ProcessSets::kStatic;
  using WhileJoined = hvd::InitOptions::WhileJoined;
  options.while_joined = all_while_joined ? WhileJoined::kAll : WhileJoined::kAllReduceOnly;
  options.report = report_on_stderr();
  options.interrupt = check_interrupts;
  options.whereabouts = as_function(whereabouts);
  options.leave_backward = raise_in_backward;
  const WithoutGil without_gil;
  if (hvd::is_initialized()) return;
  interruptible([&] { hvd::init(options); });
  enlist(hvd::current()->group(), [](Deadline) { end(); });
}

std::map<int, std::vector<Rank>> process_sets() {
  std::map<int, std::vector<Rank>> sets;
  for (const hvd::ProcessSet& set : hvd::process_sets()) sets[set.id()] = set.ranks();
  return sets;
}

void bind_places(py::module_& module) {
  module.def("is_initialized", &hvd::is_initialized);
  module.def("rank", &hvd::rank);
  module.def("size", &hvd::size);
  module.def("local_rank", &hvd::local_rank);
  module.def("local_size", &hvd::local_size);
  module.def("cross_rank", &hvd::cross_rank);
  module.def("cross_size", &hvd::cross_size);
  module.def("is_homogeneous", &hvd::is_homogeneous);
}

void bind_process_sets(py::module_& module) {
  module.def(
      "add_process_set",
      [](std::vector<Rank> ranks) {
        return interruptible([&] { return hvd::add_process_set(std::move(ranks)).id(); });
      },
      py::arg("ranks"),
      py::call_guard<WithoutGil>());
  module.def(
      "remove_process_set",
      [](int set) {
        return interruptible([&] { return hvd::remove_process_set(hvd::ProcessSet(set)); });
      },
      py::arg("set"),
      py::call_guard<WithoutGil>());
  module.def("process_sets", &process_sets);
}

/// A worker must not try again after any of these errors, as elastic.run does after others.
std::map<std::string, std::string> elastic_round_or_end() {
  try {
    auto variables = interruptible([] { return hvd::next_elastic_round(check_interrupts); });
    if (variables) return *std::move(variables);
  } catch (const Error& error) {
    throw std::runtime_error(std::string(error.message()));
  }
  throw std::runtime_error(hvd::elastic_removal_text());
}

void bind_elastic(py::module_& module) {
  module.def("is_in_elastic_job", &hvd::is_in_elastic_job);
  module.def(
      "elastic_next_round",
      []() -> std::map<std::string, std::string> {
        if (!hvd::is_in_elastic_job()) return {};
        return elastic_round_or_end();
      },
      py::call_guard<WithoutGil>());
  module.def(
      "elastic_host_changes",
      [] {
        if (!hvd::is_in_elastic_job()) return 0;
        return static_cast<int>(hvd::elastic_host_changes());
      },
      py::call_guard<WithoutGil>());
  module.def(
      "elastic_mark_synchronized", &hvd::mark_elastic_synchronized, py::call_guard<WithoutGil>());
}

void bind_timeline(py::module_& module) {
  module.def(
      "start_timeline",
      [](const std::string& path, bool mark_cycles) {
        try {
          hvd::start_timeline(path, mark_cycles ? hvd::MarkCycles::kYes : hvd::MarkCycles::kNo);
        } catch (const Error& error) {
          if (error.kind() != ErrorKind::kResource) throw;
          throw Error(ErrorKind::kUsage, std::string(error.message()));  // the path is wrong
        }
      },
      py::arg("path"),
      py::arg("mark_cycles"),
      py::call_guard<WithoutGil>());
  module.def("stop_timeline", &hvd::stop_timeline, py::call_guard<WithoutGil>());
}

}  // namespace

PYBIND11_MODULE(_hvd, module) {
  module.doc() = "Horovod's operations; see peal.horovod.";
  remember_main_thread();
  generation();  // starts to count forks
  translate_operation_errors();
  module.def("set_errors", &set_operation_errors, py::arg("internal"), py::arg("mismatch"));
  module.def("init",
             &init,
             py::kw_only(),
             py::arg("ranks"),
             py::arg("process_sets"),
             py::arg("dynamic"),
             py::arg("all_while_joined"),
             py::arg("whereabouts"));
  module.def("shutdown", &end, py::call_guard<WithoutGil>());
  bind_places(module);
  bind_process_sets(module);
  bind_operations(module);
  bind_timeline(module);
  bind_elastic(module);
  module.def("tell_of_exception", &tell_all_of_exception, py::call_guard<WithoutGil>());
  module.def("leave_all", &leave_all, py::call_guard<WithoutGil>());
  py::module_::import("peal._ending").attr("end_with_process")(module);
}

}  // namespace peal::python
