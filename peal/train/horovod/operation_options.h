// The options of Horovod's operations. For training programs, by peal/horovod.h.
#pragma once

#include <string>

#include "peal/named/request.h"
#include "peal/train/horovod/compression.h"
#include "peal/train/horovod/process_set.h"

namespace peal::hvd {

using named::Reduction;

// Horovod's names.
inline constexpr Reduction Average = Reduction::kAverage;
inline constexpr Reduction Sum = Reduction::kSum;
inline constexpr Reduction Adasum = Reduction::kAdasum;
inline constexpr Reduction Min = Reduction::kMin;
inline constexpr Reduction Max = Reduction::kMax;
inline constexpr Reduction Product = Reduction::kProduct;

struct OperationOptions {
  /// Operations of different ranks with the same name belong together. Without a name, the n-th
  /// operation of this kind in the set belongs to the n-th of the other ranks.
  std::string name = {};
  ProcessSet process_set = {};
};

struct ReductionOptions {
  std::string name = {};  // as OperationOptions::name
  Reduction op = Average;
  double prescale_factor = 1.0;
  double postscale_factor = 1.0;
  CompressorPtr compression = nullptr;
  ProcessSet process_set = {};
};

}  // namespace peal::hvd
