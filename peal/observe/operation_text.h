// An operation as text, for records and errors.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "peal/base/units.h"
#include "peal/observe/flight_layout.h"

namespace peal::observe {

/// "all_reduce #12 (sum of 1000 f32)", "broadcast #3 (10 f32, root 1)", "barrier #4",
/// "recv of 10 f32 from rank 1, tag 0". Ranks are those of `kind`.
std::string describe(const OperationKind& kind, std::uint64_t sequence, Elements count);

/// The names of operations in flight, the oldest first: `allreduce "a", allreduce "b" and 7 more`.
/// Empty without names.
std::string names_text(std::span<const std::string> names);

/// Whether the operation is a send or a receive, which has a tag and not a sequence number.
constexpr bool is_message(Operation operation) {
  return operation == Operation::kSend || operation == Operation::kRecv;
}

}  // namespace peal::observe
