// The loops of the probe. Called by probe_subject.cpp alone.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/dtype.h"
#include "peal/base/units.h"

namespace peal::bench {

enum class Stores : unsigned char {
  kPlain,
  kStreaming,  // past the caches; outputs begin at multiples of 64 bytes, else plain
};

/// out_k[i] = in_0[i] + in_1[i] + ... for each output k; one input is a copy.
/// Shape: `size` bytes of `dtype` each. Outputs may be the same memory as inputs.
void combine(std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs,
             Bytes size,
             DType dtype,
             Stores stores);

}  // namespace peal::bench
