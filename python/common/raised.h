// The exception that is about to end a Python block or program. Used by the extension modules.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

namespace peal::python {

/// Why a block of Python ends; empty for a normal end.
struct Raised {
  std::optional<std::string> words;  // see words_of
  bool is_failed_exit = false;       // SystemExit with a code other than 0; has no words
};

/// "ValueError: out of luck", by peal._errors.words_of. Call with the GIL held.
std::string words_of(const pybind11::object& exception) noexcept;

/// Describes an exception, or None. SystemExit with code 0 counts as a normal end. Call with the
/// GIL held.
Raised describe_raised(const pybind11::object& exception) noexcept;

/// Describes the exception that this thread handles, or that passes through a `finally`. Ignores an
/// exception that the parent handled when it forked this process.
/// Threads: any, with or without the GIL.
Raised handled_exception() noexcept;

}  // namespace peal::python
