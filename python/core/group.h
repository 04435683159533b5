// peal.ProcessGroup and peal.Work, which module.cpp binds with pybind11.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/reduce_op.h"
#include "peal/group/process_group.h"
#include "peal/group/work.h"

#include "python/core/arrays.h"

namespace peal::python {

namespace py = pybind11;

/// A timeout in seconds, as in Python; nullopt: the timeout of the group.
using Seconds = std::optional<double>;
/// The number of elements for each rank; nullopt: equal blocks.
using Counts = std::optional<std::vector<std::int64_t>>;

/// An operation in flight. Its arrays live until the operation has ended.
class PyWork {
 public:
  using Held = std::shared_ptr<std::vector<Arrays>>;

  /// Call with the GIL held, because of `held`.
  PyWork(WorkPtr work, std::vector<Arrays> held);
  ~PyWork();
  PyWork(PyWork&&) = default;
  PyWork& operator=(PyWork&&) = delete;

  void wait(Seconds timeout) const;
  bool is_completed() const { return work_->is_completed(); }
  /// The operation's error, or None.
  py::object exception() const;
  Rank source() const { return work_->source(); }

 private:
  WorkPtr work_;
  Held held_;
};

/// A ProcessGroup whose calls run without the GIL.
class PyGroup {
 public:
  explicit PyGroup(ProcessGroupPtr group);
  ~PyGroup();
  PyGroup(PyGroup&&) = default;
  PyGroup& operator=(PyGroup&&) = delete;

  ProcessGroup& get() const;
  /// The group for calls that a forked process may make too: name, rank and size.
  const ProcessGroup& known() const { return *group_; }
  /// Whether this process was forked from the process that is in the group.
  bool is_of_parent() const;

  /// Runs `call(group)` on this thread.
  template <class Call>
  decltype(auto) run(Call&& call) const;
  /// Starts the operation of `call(group)`; its Work keeps the arrays.
  template <class Call>
  PyWork start(std::vector<Arrays> held, Call&& call) const;

 private:
  ProcessGroupPtr group_;
  int generation_;
};

/// Errors: usage (negative or NaN).
Timeout timeout_of(Seconds seconds);

/// Adds both classes to the module.
void bind_group(py::module_& module);

}  // namespace peal::python
