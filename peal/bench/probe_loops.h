// The loops of the probe. Called only by probe_subject.cpp.
#pragma once

#include <cstddef>
#include <span>

#include "peal/base/dtype.h"
#include "peal/base/units.h"

namespace peal::bench {

enum class Stores : unsigned char {
  kPlain,
  kStreaming,  // bypass the caches; plain unless all outputs begin at multiples of 64 bytes
};

/// out_k[i] = in_0[i] + in_1[i] + ... for each output k; with one input, a copy.
/// Shape: each input and output has `size` bytes of `dtype`. Outputs may be the same memory as
/// inputs.
void combine(std::span<const std::byte* const> inputs,
             std::span<std::byte* const> outputs,
             Bytes size,
             DType dtype,
             Stores stores);

}  // namespace peal::bench
