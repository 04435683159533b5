#include "peal/train/optim/shard_assignment.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace peal::train {

std::vector<Rank> assign_shards(std::span<const Bytes> sizes, std::vector<Bytes>& load) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(
      order, [&](std::size_t one, std::size_t other) { return sizes[one] > sizes[other]; });
  std::vector<Rank> owners(sizes.size());
  for (const std::size_t index : order) {
    const auto least = std::ranges::min_element(load);  // the first of several
    owners[index] = static_cast<Rank>(least - load.begin());
    *least += sizes[index];
  }
  return owners;
}

}  // namespace peal::train
