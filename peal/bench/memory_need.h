// How much memory a case takes, told before any rank is started: ranks that together take more than
// there is are killed, or something else is. Called by `run` (bench.h).
#pragma once

#include <string>
#include <vector>

#include "peal/bench/case.h"

namespace peal::bench {

/// The inputs and outputs of all ranks together, as one backend has them in one kind of memory.
Bytes buffers_of(const Case&);

/// Something that holds buffers while a case is measured: "peal registered", "probe", "openmpi".
struct Holder {
  std::string name;
  Bytes size;
};

/// Throws Error(usage) that says who takes how much, unless there is so much for all of them.
void check_memory(const Case&, const std::vector<Holder>& holders, Bytes available);

}  // namespace peal::bench
