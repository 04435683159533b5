// peal._core: process groups over arrays, without torch. Users import it through the package peal.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <sys/wait.h>

#include <cctype>
#include <optional>
#include <string>
#include <utility>

#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/config/stop_flag_path.h"
#include "peal/init/init.h"
#include "peal/system/per_process.h"
#include "peal/system/process_state.h"
#include "peal/system/stop_requests.h"

#include "python/common/errors.h"
#include "python/common/gil.h"
#include "python/common/leaving.h"
#include "python/common/reports.h"
#include "python/common/signals.h"
#include "python/core/docs.h"
#include "python/core/group.h"

namespace peal::python {
namespace {

PyGroup init(const std::string& init_method,
             std::optional<Rank> rank,
             std::optional<int> world_size,
             Seconds timeout) {
  InitOptions options;
  options.init_method = init_method;
  options.rank = rank;
  options.world_size = world_size;
  options.timeout = timeout_of(timeout);
  options.report = report_on_stderr();
  options.interrupt = check_interrupts;
  const WithoutGil without_gil;
  return PyGroup(interruptible([&] { return peal::init_process_group(options); }));
}

struct NotedRequests {
  StopRequests requests{stop_flag_path(process_environment())};
};

/// Made by the first call, and kept until the process ends.
constinit PerProcess<NotedRequests> noted_requests;

bool stop_requested() { return noted_requests.get().requests.has_come(); }

void bind_reduce_op(py::module_& module) {
  py::class_<ReduceOp> op(module, "ReduceOp", py::is_final(), docs::kReduceOp);
  const std::pair<const char*, ReduceOp> constants[] = {{"SUM", ReduceOp::kSum},
                                                        {"PRODUCT", ReduceOp::kProduct},
                                                        {"MIN", ReduceOp::kMin},
                                                        {"MAX", ReduceOp::kMax},
                                                        {"AVG", ReduceOp::kAvg},
                                                        {"BAND", ReduceOp::kBand},
                                                        {"BOR", ReduceOp::kBor},
                                                        {"BXOR", ReduceOp::kBxor}};
  for (const auto& [name, value] : constants) op.attr(name) = value;
  op.def_static("premul_sum", &ReduceOp::premul_sum, py::arg("factor"), docs::kReduceOpPremulSum);
  op.def(
      "__eq__",
      [](const ReduceOp& a, const ReduceOp& b) { return a == b; },
      py::arg("other"),
      py::pos_only(),
      py::is_operator());
  op.def("__hash__", [](const ReduceOp& a) {
    return py::hash(py::make_tuple(static_cast<int>(a.kind), a.factor));
  });
  op.def("__repr__", [](const ReduceOp& a) {
    std::string name(name_of(a.kind));
    if (a.kind == ReduceOp::Kind::kPremulSum) {
      return "ReduceOp.premul_sum(" + py::repr(py::float_(a.factor)).cast<std::string>() + ")";
    }
    for (char& letter : name) letter = static_cast<char>(std::toupper(letter));
    return "ReduceOp." + name;
  });
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = docs::kModule;
  remember_main_thread();
  generation();  // starts to count forks
  translate_errors_to("peal._errors", "Error");
  module.attr("ANY_SOURCE") = kAnySource;
  bind_reduce_op(module);
  bind_group(module);
  module.def("init_process_group",
             &init,
             py::arg("init_method") = "env://",
             py::kw_only(),
             py::arg("rank") = py::none(),
             py::arg("world_size") = py::none(),
             py::arg("timeout") = py::none(),
             docs::kInitProcessGroup);
  module.def("stop_requested", &stop_requested, docs::kStopRequested);
  module.def("tell_of_exception",
             &tell_all_of_exception,
             py::arg("what"),
             py::call_guard<WithoutGil>(),
             docs::kTellOfException);
  module.def("leave_all", &leave_all, py::call_guard<WithoutGil>(), docs::kLeaveAll);
  module.def(
      "describe_end",
      [](int code) {
        return describe_wait_status(code < 0 ? W_EXITCODE(0, -code) : W_EXITCODE(code, 0));
      },
      py::arg("exitcode"),
      docs::kDescribeEnd);
}

}  // namespace peal::python
