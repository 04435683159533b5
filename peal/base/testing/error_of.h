// For tests of errors.
#pragma once

#include <string>
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

/// The message of the usage error that `call` throws. If it throws another error, or does not
/// throw, a text that says so.
template <class Call>
std::string usage_error_of(Call&& call) {
  const Error error = error_of(std::forward<Call>(call));
  if (error.kind() == ErrorKind::kUsage) return std::string(error.message());
  return std::string("no usage error, but ") + error.what();
}

}  // namespace peal
