// Which samples of an epoch a rank takes: every ranks-th of the common order. The arithmetic behind
// DistributedSampler.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::train::data {

/// What happens to an epoch that the ranks do not divide.
enum class Remainder : unsigned char {
  kPad,   // samples of the epoch's beginning are taken again, so that all ranks have equally many
  kDrop,  // the epoch's last samples are left out
};

/// out[k] = order[(from + rank + k * ranks) mod order.size()]
/// Shape: (order.size() - from) / ranks samples, rounded up (kPad) or down (kDrop): the same number
/// on every rank. `from` is the epoch's position, at most order.size(), from which on to share out:
/// everything before it has been taken, by however many ranks.
std::vector<std::size_t> shard_of(std::span<const std::size_t> order,
                                  Rank rank,
                                  int ranks,
                                  Remainder remainder,
                                  std::size_t from = 0);

}  // namespace peal::train::data
