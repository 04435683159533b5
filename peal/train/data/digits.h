// Handwritten digits that no hand wrote, for whoever has no data set at hand: the demo, the
// examples and the tests. Whoever shows results on them calls them generated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "peal/train/data/labelled_images.h"

namespace peal::train::data {

/// Draws digits of 28 x 28 pixels, as MNIST's: picture i shows a digit of 0 .. 9 drawn at random.
/// Each is written in one of several ways, every point of it shifted a little, then turned,
/// sheared, scaled, moved, inked with a pen of random width, and sprinkled with noise. The same
/// (count, seed) gives the same pictures on every machine: only +, -, *, / and sqrt of doubles are
/// used, which IEEE 754 rounds alike everywhere. Cost: about 60 microseconds a picture.
LabelledImages draw_digits(std::size_t count, std::uint64_t seed);

/// 9,000 digits to train on and 1,000 to test with.
DigitSets generated_digits(std::uint64_t seed);

}  // namespace peal::train::data
