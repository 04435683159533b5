// The memory that a case needs, checked before any rank starts: if ranks take more memory than the
// machine has, the system kills them or another process. Called by `run` (bench.h).
#pragma once

#include <string>
#include <vector>

#include "peal/bench/case.h"

namespace peal::bench {

/// The size of the inputs and outputs of all ranks together, for one backend in one kind of memory.
Bytes buffers_of(const Case&);

/// A holder of buffers during the measurement of a case: "peal registered", "probe", "openmpi".
struct Holder {
  std::string name;
  Bytes size;
};

/// Errors: usage, with the size of each holder, if all holders together need more than `available`.
void check_memory(const Case&, const std::vector<Holder>& holders, Bytes available);

}  // namespace peal::bench
