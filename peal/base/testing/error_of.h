// For tests of errors.
#pragma once

#include <utility>

#include "peal/base/error.h"

namespace peal {

/// The error that `call` throws; an error of kind bug if it throws none.
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
