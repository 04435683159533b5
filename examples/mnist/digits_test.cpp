#include "mnist/digits.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mnist/glyphs.h"

namespace mnist {
namespace {

TEST(DigitsTest, TheSameSeedDrawsTheSamePictures) {
  EXPECT_EQ(draw_digits(20, 1), draw_digits(20, 1));
  EXPECT_NE(draw_digits(20, 1), draw_digits(20, 2));
}

TEST(DigitsTest, TheFirstPicturesDoNotDependOnTheCount) {
  const LabelledImages few = draw_digits(5, 1), many = draw_digits(9, 1);
  EXPECT_TRUE(std::equal(few.labels.begin(), few.labels.end(), many.labels.begin()));
  EXPECT_TRUE(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
}

TEST(DigitsTest, ThePicturesOfAKnownSeedAreTheSameForever) {
  const LabelledImages images = draw_digits(50, 1234);
  std::uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::uint8_t pixel : images.pixels) hash = (hash ^ pixel) * 1099511628211u;
  EXPECT_EQ(hash, 14919274170826533296u);
}

TEST(DigitsTest, AllDigitsAreAboutEquallyFrequentAndEveryPictureHasInk) {
  const LabelledImages images = draw_digits(1000, 3);
  ASSERT_EQ(images.pixels.size(), 1000u * 28 * 28);
  std::array<int, 10> count{};
  for (const std::uint8_t label : images.labels) count.at(label) += 1;
  for (const int n : count) EXPECT_NEAR(n, 100, 50);
  for (std::size_t i = 0; i < images.count(); ++i) {
    const auto first = images.pixels.begin() + static_cast<std::ptrdiff_t>(i * 28 * 28);
    const auto white = std::count_if(first, first + 28 * 28, [](auto p) { return p > 200; });
    EXPECT_GT(white, 10) << "picture " << i << " of a " << int{images.labels[i]};
    EXPECT_LT(white, 400) << "picture " << i << " of a " << int{images.labels[i]};
  }
}

TEST(DigitsTest, TrainingAndTestDigitsAreDifferentAndCalledGenerated) {
  const DigitSets sets = generated_digits(1);
  EXPECT_EQ(sets.train.count(), 9000u);
  EXPECT_EQ(sets.test.count(), 1000u);
  EXPECT_FALSE(
      std::equal(sets.test.labels.begin(), sets.test.labels.end(), sets.train.labels.begin()));
  EXPECT_EQ(sets.kind, "generated");
  EXPECT_THAT(sets.source, testing::HasSubstr("generated"));
}

TEST(GlyphsTest, EveryDigitIsWrittenInsideTheUnitSquare) {
  for (const std::vector<Glyph>& ways : written_digits()) {
    ASSERT_FALSE(ways.empty());
    for (const Glyph& glyph : ways) {
      for (const Stroke& stroke : glyph) {
        ASSERT_GE(stroke.size(), 2u);
        for (const Point p : smooth(stroke)) {
          EXPECT_TRUE(p.x >= 0 && p.x <= 1 && p.y >= 0 && p.y <= 1);
        }
      }
    }
  }
}

TEST(GlyphsTest, ASmoothStrokePassesThroughItsPoints) {
  const Stroke stroke = {{0, 0}, {0.5, 1}, {1, 0}};
  const Stroke line = smooth(stroke);
  ASSERT_EQ(line.size(), 11u);
  for (std::size_t i = 0; i < stroke.size(); ++i) {
    EXPECT_DOUBLE_EQ(line[i * 5].x, stroke[i].x);
    EXPECT_DOUBLE_EQ(line[i * 5].y, stroke[i].y);
  }
}

}  // namespace
}  // namespace mnist
