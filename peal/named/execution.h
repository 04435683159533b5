// Carries out operations by name, by the collectives of a group.
#pragma once

#include <span>
#include <vector>

#include "peal/group/process_group.h"
#include "peal/named/operation.h"
#include "peal/named/request.h"
#include "peal/named/timeline.h"

namespace peal::named {

/// An operation that runs as a part of a batch.
struct Member {
  const Request* request = nullptr;
  /// Null on a rank that has joined: the rank takes part with neutral elements, or without rows.
  Operation* operation = nullptr;
};

/// Runs the members, which `fuse` has put into one batch, as one operation.
/// Order: collective.
/// Errors: those of the operations, of `Memory::allocate`.
void execute(ProcessGroup& group, std::span<const Member> members, TimelineSwitch& timeline);

/// The rows of each rank of a reduce-scatter: the first ranks get one more if there is a remainder.
std::vector<std::int64_t> divided_rows(std::int64_t rows, int ranks);

/// Whether the reduction has a meaning for the type.
bool has_meaning(Reduction reduction, DType dtype);

}  // namespace peal::named
