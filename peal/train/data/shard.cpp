#include "peal/train/data/shard.h"

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::train::data {

std::vector<std::size_t> shard_of(std::span<const std::size_t> order,
                                  Rank rank,
                                  int ranks,
                                  Remainder remainder,
                                  std::size_t from) {
  const auto stride = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> mine(share_of(order.size(), rank, ranks, remainder, from));
  for (std::size_t k = 0; k < mine.size(); ++k) {
    mine[k] = order[(from + static_cast<std::size_t>(rank) + k * stride) % order.size()];
  }
  return mine;
}

std::size_t share_of(
    std::size_t size, Rank rank, int ranks, Remainder remainder, std::size_t from) {
  const auto stride = static_cast<std::size_t>(ranks);
  const auto first = static_cast<std::size_t>(rank);
  const std::size_t left = size - from;
  switch (remainder) {
    case Remainder::kPad:
      return (left + stride - 1) / stride;
    case Remainder::kDrop:
      return left / stride;
    case Remainder::kUneven:
      return (left + stride - 1 - first) / stride;
  }
  return 0;
}

std::size_t batch_count(std::size_t samples, std::size_t batch_size, ShortBatch short_batch) {
  if (batch_size == 0) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{} samples make no batches of 0 samples: pass a batch size of 1 or "
                            "more",
                            samples));
  }
  const std::size_t full = samples / batch_size;
  const bool rest = full * batch_size < samples;
  return full + (rest && short_batch == ShortBatch::kKeep ? 1 : 0);
}

}  // namespace peal::train::data
