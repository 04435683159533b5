// For tests of what goes wrong.
#pragma once

#include <utility>

#include "peal/base/error.h"

namespace peal {

/// What `call` throws; if nothing, an error of kind bug that says so.
template <class Call>
Error error_of(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorKind::kBug, "nothing was thrown");
}

}  // namespace peal
