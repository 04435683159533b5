#include "peal/train/formats/box.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::train {
namespace {

/// The number of elements; nothing beyond 2^63.
std::optional<std::int64_t> volume(const std::vector<std::int64_t>& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size == 0) return 0;
    if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace

Box whole_box(const std::vector<std::int64_t>& shape) {
  return {std::vector<std::int64_t>(shape.size(), 0), shape};
}

std::optional<Box> intersection(const Box& a, const Box& b) {
  Box common;
  for (std::size_t i = 0; i < a.sizes.size(); ++i) {
    const std::int64_t begin = std::max(a.offsets[i], b.offsets[i]);
    const std::int64_t end = std::min(a.offsets[i] + a.sizes[i], b.offsets[i] + b.sizes[i]);
    if (begin >= end) return std::nullopt;
    common.offsets.push_back(begin);
    common.sizes.push_back(end - begin);
  }
  return common;
}

std::vector<std::int64_t> shape_around(const std::vector<Box>& boxes) {
  if (boxes.empty()) throw Error(ErrorKind::kMismatch, "there are no parts");
  std::vector<std::int64_t> shape(boxes.front().sizes.size(), 0);
  for (const Box& box : boxes) {
    if (box.sizes.size() != shape.size() || box.offsets.size() != shape.size()) {
      throw Error(ErrorKind::kMismatch, "its parts have different numbers of dimensions");
    }
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t end = 0;
      if (__builtin_add_overflow(box.offsets[i], box.sizes[i], &end)) {
        throw Error(ErrorKind::kMismatch, "a part lies beyond 2^63");
      }
      shape[i] = std::max(shape[i], end);
    }
  }
  return shape;
}

std::string why_not_divided(const std::vector<std::int64_t>& shape, const std::vector<Box>& boxes) {
  const Box whole = whole_box(shape);
  std::int64_t covered = 0;  // at most the whole: boxes that lie inside and do not overlap
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const std::int64_t size = volume(boxes[i].sizes).value_or(0);
    if (size > 0 && intersection(boxes[i], whole) != boxes[i]) {
      return fmt::format("the part {} lies outside of the shape [{}]",
                         to_string(boxes[i]),
                         fmt::join(shape, ", "));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (size > 0 && intersection(boxes[i], boxes[j])) {
        return fmt::format("the parts {} and {} overlap", to_string(boxes[j]), to_string(boxes[i]));
      }
    }
    covered += size;
  }
  const auto all = volume(shape);
  if (all && covered == *all) return "";
  return fmt::format("its parts have {} elements, but the shape [{}] has {}",
                     covered,
                     fmt::join(shape, ", "),
                     all ? std::to_string(*all) : "too many");
}

std::string to_string(const Box& box) {
  return fmt::format(
      "[{}] of shape [{}]", fmt::join(box.offsets, ", "), fmt::join(box.sizes, ", "));
}

}  // namespace peal::train
