// What a block of Python, or a program, is about to end by. Used by both extension modules.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>
#include <string>

namespace peal::python {

/// What ends a block of Python, if something does.
struct Raised {
  std::optional<std::string> words;  // "ValueError: out of luck", as peal._errors.words_of has it
  bool is_failed_exit = false;       // SystemExit with a code other than 0: an end without words
};

/// Of an exception, or of None. An exit with 0 is a return. With the GIL.
Raised describe_raised(const pybind11::object& exception) noexcept;

/// Of what this thread handles, or what is on its way through a `finally`; not of what the parent
/// handled when this process was forked. Threads: any, with the GIL or without.
Raised handled_exception() noexcept;

}  // namespace peal::python
