// Pictures with their classes, as from MNIST's files or `draw_digits`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mnist {

/// Grey pictures of one size. A value.
struct LabelledImages {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint8_t> pixels;  // [count, rows, columns], 0 black to 255 white
  std::vector<std::uint8_t> labels;  // [count]

  std::size_t count() const { return labels.size(); }
  friend bool operator==(const LabelledImages&, const LabelledImages&) = default;
};

/// Digits for training, and held-out digits for tests.
struct DigitSets {
  LabelledImages train;
  LabelledImages test;
  std::string kind;    // "mnist", "mnist-t10k" or "generated"
  std::string source;  // a description for people
};

}  // namespace mnist
