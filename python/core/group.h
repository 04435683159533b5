// peal.ProcessGroup and peal.Work: what pybind11 binds in module.cpp.
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

/// Seconds, as Python has them; none: the group's own.
using Seconds = std::optional<double>;
/// As many elements for each rank; none: equal blocks.
using Counts = std::optional<std::vector<std::int64_t>>;

/// An operation under way, with the arrays that it uses: they live until it has ended.
class PyWork {
 public:
  using Held = std::shared_ptr<std::vector<Arrays>>;

  /// `held` with the GIL held.
  PyWork(WorkPtr work, std::vector<Arrays> held);
  ~PyWork();
  PyWork(PyWork&&) = default;
  PyWork& operator=(PyWork&&) = delete;

  void wait(Seconds timeout) const;
  bool is_completed() const { return work_->is_completed(); }
  /// None, or what it ended with.
  py::object exception() const;
  Rank source() const { return work_->source(); }

 private:
  WorkPtr work_;
  Held held_;
};

/// Each method is ProcessGroup's of the same name, without the GIL; see there.
class PyGroup {
 public:
  explicit PyGroup(ProcessGroupPtr group);
  ~PyGroup();
  PyGroup(PyGroup&&) = default;
  PyGroup& operator=(PyGroup&&) = delete;

  ProcessGroup& get() const;
  /// The same for what may be asked in a forked process too: its name, rank and size.
  const ProcessGroup& known() const { return *group_; }
  /// Whether this process was forked from the one that is in the group.
  bool is_of_parent() const;

  /// Runs `call(group)` on this thread.
  template <class Call>
  decltype(auto) run(Call&& call) const;
  /// Starts what `call(group)` starts, with these arrays.
  template <class Call>
  PyWork start(std::vector<Arrays> held, Call&& call) const;

 private:
  ProcessGroupPtr group_;
  int generation_;
};

/// Errors: usage (negative, no number).
Timeout timeout_of(Seconds seconds);

/// Adds both classes to the module.
void bind_group(py::module_& module);

}  // namespace peal::python
