// The samples of an epoch that a rank takes: every ranks-th sample of the common order. The
// arithmetic of the samplers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "peal/base/units.h"

namespace peal::train::data {

/// How to treat an epoch whose size is not a multiple of the number of ranks.
enum class Remainder : unsigned char {
  kPad,     // takes samples from the epoch's beginning again, so that all ranks get the same number
  kDrop,    // leaves out the last samples of the epoch
  kUneven,  // each sample once: the first ranks take one sample more than the others
};

/// out[k] = order[(from + rank + k * ranks) mod order.size()]
/// Divides the epoch from position `from` (at most order.size()) on between the ranks. The samples
/// before `from` are already taken, by any number of ranks.
/// Shape: share_of(order.size(), rank, ranks, remainder, from) samples.
std::vector<std::size_t> shard_of(std::span<const std::size_t> order,
                                  Rank rank,
                                  int ranks,
                                  Remainder remainder,
                                  std::size_t from = 0);

/// The number of samples that a rank takes. With left = size - from, this is
///   left / ranks rounded up (kPad) or down (kDrop), the same on every rank;
///   (left - rank) / ranks rounded up (kUneven): rank 0 takes the most, the last rank the fewest.
std::size_t share_of(
    std::size_t size, Rank rank, int ranks, Remainder remainder, std::size_t from = 0);

/// How to treat a last batch with fewer samples than the others.
enum class ShortBatch : unsigned char { kKeep, kDrop };

/// The number of batches that `samples` samples make: samples / batch_size, rounded up (kKeep) or
/// down (kDrop). For the batches of a rank, `samples` is share_of(...). Ranks with different shares
/// (kUneven) may differ by one batch.
/// Errors: usage (batches of 0 samples).
std::size_t batch_count(std::size_t samples,
                        std::size_t batch_size,
                        ShortBatch short_batch = ShortBatch::kKeep);

}  // namespace peal::train::data
