#include "peal/train/data/permutation.h"

#include <numeric>
#include <utility>

#include "peal/train/data/random.h"

namespace peal::train::data {

std::vector<std::size_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::size_t> order(size);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random({seed, epoch});
  for (std::size_t left = size; left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
  return order;
}

}  // namespace peal::train::data
