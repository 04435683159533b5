#include "peal/train/ddp/bucket_assignment.h"

#include <algorithm>
#include <map>

namespace peal::train {
namespace {

struct OpenBucket {
  std::vector<std::size_t> indices;
  Bytes size;
  Bytes cap;
};

}  // namespace

std::vector<std::vector<std::size_t>> assign_buckets(std::span<const GradientSize> gradients,
                                                     BucketCaps caps) {
  std::vector<std::vector<std::size_t>> closed;
  std::map<DType, OpenBucket> open;
  for (std::size_t index = gradients.size(); index-- > 0;) {
    const auto [dtype, count] = std::pair(gradients[index].dtype, gradients[index].count);
    OpenBucket& bucket = open.try_emplace(dtype, OpenBucket{{}, {}, caps.first}).first->second;
    bucket.indices.push_back(index);
    bucket.size += bytes_of(count, dtype);
    if (bucket.size >= bucket.cap) {
      closed.push_back(std::move(bucket.indices));
      bucket = OpenBucket{{}, {}, caps.others};
    }
  }
  for (auto& [dtype, bucket] : open) {
    if (!bucket.indices.empty()) closed.push_back(std::move(bucket.indices));
  }
  std::sort(closed.begin(), closed.end(), [](const auto& a, const auto& b) {
    return a.back() > b.back();  // the last index of a bucket is its lowest
  });
  return closed;
}

}  // namespace peal::train
