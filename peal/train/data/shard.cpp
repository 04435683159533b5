#include "peal/train/data/shard.h"

namespace peal::train::data {

std::vector<std::size_t> shard_of(std::span<const std::size_t> order,
                                  Rank rank,
                                  int ranks,
                                  Remainder remainder,
                                  std::size_t from) {
  const auto stride = static_cast<std::size_t>(ranks);
  const std::size_t left = order.size() - from;
  const std::size_t share = (remainder == Remainder::kPad ? left + stride - 1 : left) / stride;
  std::vector<std::size_t> mine(share);
  for (std::size_t k = 0; k < share; ++k) {
    mine[k] = order[(from + static_cast<std::size_t>(rank) + k * stride) % order.size()];
  }
  return mine;
}

}  // namespace peal::train::data
