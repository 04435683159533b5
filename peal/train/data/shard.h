// The samples of an epoch that a rank takes: every ranks-th sample of the common order. The
// arithmetic of DistributedSampler.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::train::data {

/// How to treat an epoch whose size is not a multiple of the number of ranks.
enum class Remainder : unsigned char {
  kPad,   // takes samples from the epoch's beginning again, so that all ranks get the same number
  kDrop,  // leaves out the last samples of the epoch
};

/// out[k] = order[(from + rank + k * ranks) mod order.size()]
/// Divides the epoch from position `from` (at most order.size()) on between the ranks. The samples
/// before `from` are already taken, by any number of ranks.
/// Shape: (order.size() - from) / ranks samples, rounded up (kPad) or down (kDrop): the same number
///   on every rank.
std::vector<std::size_t> shard_of(std::span<const std::size_t> order,
                                  Rank rank,
                                  int ranks,
                                  Remainder remainder,
                                  std::size_t from = 0);

}  // namespace peal::train::data
