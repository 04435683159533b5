// The error of an operation that has started. For training programs, by peal/horovod.h.
#pragma once

#include <utility>

#include "peal/base/error.h"

namespace peal::hvd {

/// Ranks disagree (kind mismatch), or the group has ended (all other kinds). Errors of a wrong call
/// on this rank are of the class Error.
class HorovodInternalError final : public Error {
 public:
  explicit HorovodInternalError(const Error& error) : Error(error) {}

  /// Whether the ranks can go on. If not, call shutdown and init.
  bool is_mismatch() const { return kind() == ErrorKind::kMismatch; }
};

/// Calls `wait`. Its errors become HorovodInternalError.
template <class Wait>
decltype(auto) internal_errors(Wait&& wait) {
  try {
    return std::forward<Wait>(wait)();
  } catch (const HorovodInternalError&) {
    throw;
  } catch (const Error& error) {
    throw HorovodInternalError(error);
  }
}

}  // namespace peal::hvd
