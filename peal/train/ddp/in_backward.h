// The boundary between peal and autograd's engine: errors that leave backward(). Used by
// GradientReducer.
#pragma once

#include <exception>

#include "peal/train/ddp/data_parallel_options.h"

namespace peal::train {

/// Returns what `call`, a call that autograd has asked for, returns.
/// Errors: those of `call`, as DataParallelOptions::leave_backward changes them.
template <class Call>
auto in_backward(const DataParallelOptions& options, const Call& call) {
  try {
    return call();
  } catch (...) {
    if (options.leave_backward) options.leave_backward(std::current_exception());
    throw;
  }
}

}  // namespace peal::train
