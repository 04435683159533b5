// The common part of a group's operations: reading arguments, running and binding.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "python/common/gil.h"
#include "python/common/signals.h"
#include "python/core/docs.h"
#include "python/core/group.h"

namespace peal::python {

using GroupClass = py::class_<PyGroup>;

void bind_messages(GroupClass& group);
void bind_collectives(GroupClass& group);
void bind_blocks(GroupClass& group);

// ---- arguments

/// From a ReduceOp or a name. Errors: usage (not the name of a reduction).
ReduceOp op_of(const py::object& op);

/// The only array of an argument. Errors: usage (a list).
const Array& single(const Arrays& arrays, const char* operation);

inline py::arg_v timeout_argument() { return py::arg("timeout") = py::none(); }

// ---- running

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

/// What an operation returns: nothing, or its Work.
template <bool kAsync>
using Result = std::conditional_t<kAsync, PyWork, void>;

/// Runs the blocking operation `run` and releases the arrays. With kAsync, starts `start`, the
/// _async form, whose Work keeps the arrays.
template <bool kAsync, class Run, class Start, class... Arguments>
Result<kAsync> carry_out(const PyGroup& group,
                         std::vector<Arrays> held,
                         Run run,
                         Start start,
                         const Arguments&... arguments) {
  if constexpr (kAsync) {
    return group.start(std::move(held),
                       [&](ProcessGroup& g) { return std::invoke(start, g, arguments...); });
  } else {
    group.run([&](ProcessGroup& g) { std::invoke(run, g, arguments...); });
  }
}

inline std::vector<Arrays> list_of(Arrays&& a) {
  std::vector<Arrays> list;
  list.push_back(std::move(a));
  return list;
}

inline std::vector<Arrays> list_of(Arrays&& a, Arrays&& b) {
  std::vector<Arrays> list = list_of(std::move(a));
  list.push_back(std::move(b));
  return list;
}

// ---- binding

/// Binds the blocking form `name` and `name`_async. Both take `arguments` and a timeout.
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

}  // namespace peal::python
