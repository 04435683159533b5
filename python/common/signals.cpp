#include "python/common/signals.h"

#include <pthread.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <string>
#include <utility>

#include "peal/base/error.h"

namespace peal::python {
namespace {

pthread_t main_thread;

/// What a handler has raised on this thread, until the call that it ended has come back.
thread_local std::exception_ptr raised;

thread_local bool is_without_signals = false;

/// "TimeoutError: too slow", without the traceback that follows it.
std::string in_a_line(const pybind11::error_already_set& error) {
  std::string text = error.what();
  text.resize(std::min(text.size(), text.find('\n')));
  while (text.ends_with(' ') || text.ends_with(':')) text.pop_back();
  return text;
}

}  // namespace

void remember_main_thread() { main_thread = ::pthread_self(); }

void check_signals() {
  if (is_without_signals) return;
  if (::pthread_equal(main_thread, ::pthread_self()) == 0 || Py_IsInitialized() == 0) return;
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return;
  const pybind11::error_already_set error;
  raised = std::make_exception_ptr(error);
  throw Error(ErrorKind::kPeerLost, "a signal handler raised " + in_a_line(error));
}

WithoutSignals::WithoutSignals() : before_(std::exchange(is_without_signals, true)) {}
WithoutSignals::~WithoutSignals() { is_without_signals = before_; }

bool has_pending_exception() { return raised != nullptr; }

void throw_pending_exception() {
  if (raised) std::rethrow_exception(std::exchange(raised, nullptr));
}

}  // namespace peal::python
