// Parts of a tensor: where a part lies, and whether parts make up a whole. Without LibTorch. Used
// by the checkpoints, for shards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace peal::train {

/// A rectangular part of a tensor: from `offsets` on, of the shape `sizes`.
struct Box {
  std::vector<std::int64_t> offsets = {};
  std::vector<std::int64_t> sizes = {};

  friend bool operator==(const Box&, const Box&) = default;
  friend auto operator<=>(const Box&, const Box&) = default;
};

/// The box of a whole tensor of this shape.
Box whole_box(const std::vector<std::int64_t>& shape);

/// The common part; nothing if it is empty. Shape: boxes of the same number of dimensions.
std::optional<Box> intersection(const Box& a, const Box& b);

/// The smallest shape that has all boxes.
/// Errors: mismatch (no boxes, different numbers of dimensions, a number beyond 2^63).
std::vector<std::int64_t> shape_around(const std::vector<Box>& boxes);

/// Why `boxes` are not a division of a tensor of this shape; empty if each element is in exactly
/// one box.
/// Cost: n^2 for n boxes.
std::string why_not_divided(const std::vector<std::int64_t>& shape, const std::vector<Box>& boxes);

/// "[0, 3] of shape [2, 4]"
std::string to_string(const Box& box);

}  // namespace peal::train
