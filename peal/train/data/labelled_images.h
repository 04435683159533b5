// Pictures with the class that each shows: what MNIST's files hold and what `draw_digits` makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace peal::train::data {

/// Grey pictures of one size. A value.
struct LabelledImages {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::vector<std::uint8_t> pixels;  // [count, rows, columns], 0 black to 255 white
  std::vector<std::uint8_t> labels;  // [count]

  std::size_t count() const { return labels.size(); }
  friend bool operator==(const LabelledImages&, const LabelledImages&) = default;
};

/// What to train on, and what to hold out to test with.
struct DigitSets {
  LabelledImages train;
  LabelledImages test;
  std::string kind;    // "mnist", "mnist-t10k" or "generated"
  std::string source;  // in words, for people
};

}  // namespace peal::train::data
