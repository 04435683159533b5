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

/// Indices of gradients by bucket.
using BucketAssignment = std::vector<std::vector<std::size_t>>;

/// The order in which backward computes gradients, if it is not known: about the reverse of their
/// registration.
std::vector<std::size_t> reverse_order(std::size_t gradients);

/// Takes gradients in `order`, the order in which they become ready. Each bucket has one type. A
/// bucket closes when it has reached its cap; the last gradient may exceed the cap. No gradient is
/// split. Buckets are in the order of their completion.
BucketAssignment assign_buckets(std::span<const GradientSize> gradients,
                                std::span<const std::size_t> order,
                                BucketCaps caps);

}  // namespace peal::train
