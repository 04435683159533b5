// Decides which gradients are sent together. Pure arithmetic; DistributedDataParallel fills the
// buckets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/dtype.h"
#include "peal/base/units.h"

namespace peal::train {

struct BucketCaps {
  Bytes first;   // small, so that communication begins early in the backward pass
  Bytes others;  // large, for efficiency
};

struct GradientSize {
  Elements count;
  DType dtype = DType::kF32;
};

/// Indices of gradients by bucket. Takes parameters in reverse, because backward computes gradients
/// in about that order. Each bucket has one type. A bucket closes when it has reached its cap; the
/// last gradient may exceed the cap. No gradient is split. Buckets are in the order of their
/// completion: by their lowest index, descending.
std::vector<std::vector<std::size_t>> assign_buckets(std::span<const GradientSize> gradients,
                                                     BucketCaps caps);

}  // namespace peal::train
