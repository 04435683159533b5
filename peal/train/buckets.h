// Which gradients travel together. Pure arithmetic; DistributedDataParallel fills the buckets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/units.h"

namespace peal::train {

struct BucketCaps {
  Bytes first;   // small, so that communication begins early in the backward pass
  Bytes others;  // large, so that it is efficient
};

struct GradientSize {
  Elements count;
  DType dtype = DType::kF32;
};

/// Indices of gradients by bucket. Parameters are taken in reverse, which is about the order in
/// which backward computes their gradients; each type has buckets of its own; a bucket is closed
/// when it has reached its cap (the last gradient may exceed it); no gradient is split. Buckets
/// come in the order in which they will be complete: by their lowest index, descending.
std::vector<std::vector<std::size_t>> assign_buckets(std::span<const GradientSize> gradients,
                                                     BucketCaps caps);

}  // namespace peal::train
