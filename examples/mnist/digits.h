// Generated "handwritten" digits, for the demo, the examples and the tests, which need no download.
// Programs that show results on these digits must call them generated.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mnist/labelled_images.h"

namespace mnist {

/// Draws digits of 28 x 28 pixels, as in MNIST. Picture i shows a random digit of 0 .. 9, in one of
/// several shapes. Its points are shifted a little; then the digit is turned, sheared, scaled,
/// moved, inked with a pen of random width, and sprinkled with noise. The same (count, seed) gives
/// the same pictures on every machine, because the code uses only additions, subtractions,
/// multiplications, divisions and square roots of doubles. IEEE 754 rounds these in the same way
/// everywhere.
/// Cost: about 60 microseconds for each picture.
LabelledImages draw_digits(std::size_t count, std::uint64_t seed);

/// 9,000 digits to train on and 1,000 to test with.
DigitSets generated_digits(std::uint64_t seed);

}  // namespace mnist
