#include "python/common/signals.h"

#include <pthread.h>
#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "peal/base/error.h"

#include "python/common/raised.h"

namespace peal::python {
namespace {

pthread_t main_thread;

/// The exception that a signal handler raised on this thread, until the interrupted call returns.
thread_local std::exception_ptr raised;

thread_local bool is_without_signals = false;

}  // namespace

void remember_main_thread() { main_thread = ::pthread_self(); }

void check_signals() {
  if (is_without_signals) return;
  if (::pthread_equal(main_thread, ::pthread_self()) == 0 || Py_IsInitialized() == 0) return;
  const pybind11::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() == 0) return;
  const pybind11::error_already_set error;
  raised = std::make_exception_ptr(error);
  const std::string what = words_of(error.value());
  throw Error(ErrorKind::kAborted,
              "a signal handler raised " + what,
              {.cause = ErrorCause::kInterrupted, .reason = what});
}

WithoutSignals::WithoutSignals() : before_(std::exchange(is_without_signals, true)) {}
WithoutSignals::~WithoutSignals() { is_without_signals = before_; }

bool has_pending_exception() { return raised != nullptr; }

void throw_pending_exception() {
  if (raised) std::rethrow_exception(std::exchange(raised, nullptr));
}

}  // namespace peal::python
