#include "peal/train/ddp/bucket_assignment.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace peal::train {
namespace {

struct OpenBucket {
  std::vector<std::size_t> indices;
  std::size_t last = 0;  // the place of its last gradient in the order
  Bytes size;
  Bytes cap;
};

}  // namespace

std::vector<std::size_t> reverse_order(std::size_t gradients) {
  std::vector<std::size_t> order(gradients);
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return order;
}

BucketAssignment assign_buckets(std::span<const GradientSize> gradients,
                                std::span<const std::size_t> order,
                                BucketCaps caps) {
  std::vector<OpenBucket> closed;
  std::map<DType, OpenBucket> open;
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t index = order[place];
    const auto [count, dtype] = gradients[index];
    OpenBucket& bucket =
        open.try_emplace(dtype, OpenBucket{.indices = {}, .size = {}, .cap = caps.first})
            .first->second;
    bucket.indices.push_back(index);
    bucket.last = place;
    bucket.size += bytes_of(count, dtype);
    if (bucket.size >= bucket.cap) {
      closed.push_back(
          std::exchange(bucket, OpenBucket{.indices = {}, .size = {}, .cap = caps.others}));
    }
  }
  for (auto& [dtype, bucket] : open) {
    if (!bucket.indices.empty()) closed.push_back(std::move(bucket));
  }
  std::ranges::sort(closed, {}, &OpenBucket::last);
  BucketAssignment buckets;
  for (OpenBucket& bucket : closed) buckets.push_back(std::move(bucket.indices));
  return buckets;
}

}  // namespace peal::train
