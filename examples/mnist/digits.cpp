#include "mnist/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "peal/train/data/random.h"

#include "mnist/glyphs.h"

namespace mnist {
namespace {

using peal::train::data::Random;

constexpr int kSide = 28;
constexpr double kGlyphSide = 20;  // MNIST's digits fill a box of 20 pixels

// The largest variations of a picture.
constexpr double kWobble = 0.045;   // shift of each point of a stroke, in the unit square
constexpr double kTurn = 0.13;      // tangent of half the angle: about 15 degrees
constexpr double kShear = 0.25;     // italics, to both sides
constexpr double kSmallest = 0.75;  // scale, separately in x and y
constexpr double kLargest = 1.1;
constexpr double kShift = 2.5;     // pixels
constexpr double kThinnest = 0.8;  // half the pen's width, pixels
constexpr double kThickest = 1.7;
constexpr double kNoise = 24;    // of 255
constexpr double kSpeckles = 6;  // pixels of any grey, at most

/// From the unit square to pixels: x' = m00 x + m01 y + move.x, and so on, about the middle.
struct Placement {
  double m00, m01, m10, m11;
  Point move;

  Point operator()(Point p) const {
    const double x = p.x - 0.5, y = p.y - 0.5;
    return {m00 * x + m01 * y + move.x, m10 * x + m11 * y + move.y};
  }
};

Placement random_placement(Random& random) {
  // Sine and cosine from the tangent of the half angle, without a mathematics library.
  const double half = random.between(-kTurn, kTurn);
  const double cosine = (1 - half * half) / (1 + half * half);
  const double sine = 2 * half / (1 + half * half);
  const double shear = random.between(-kShear, kShear);
  const double wide = kGlyphSide * random.between(kSmallest, kLargest);
  const double tall = kGlyphSide * random.between(kSmallest, kLargest);
  const double middle = (kSide - 1) / 2.0;
  return {
      .m00 = wide * cosine,
      .m01 = tall * (shear * cosine - sine),
      .m10 = wide * sine,
      .m11 = tall * (shear * sine + cosine),
      .move = {middle + random.between(-kShift, kShift), middle + random.between(-kShift, kShift)}};
}

/// Squared distance of p from the piece between a and b.
double distance_squared(Point p, Point a, Point b) {
  const double dx = b.x - a.x, dy = b.y - a.y;
  const double length = dx * dx + dy * dy;
  const double along = length > 0 ? ((p.x - a.x) * dx + (p.y - a.y) * dy) / length : 0;
  const double t = std::clamp(along, 0.0, 1.0);
  const double ex = p.x - a.x - t * dx, ey = p.y - a.y - t * dy;
  return ex * ex + ey * ey;
}

using Canvas = std::array<double, static_cast<std::size_t>(kSide) * kSide>;  // 0 .. 255

/// Darkens the pixels near the line piece; a pixel at the edge of the pen gets a part of the ink.
void ink(Canvas& canvas, Point a, Point b, double half_width) {
  const double reach = half_width + 1;
  const auto first = [&](double u, double v) {
    return std::max(0, static_cast<int>(std::min(u, v) - reach));
  };
  const auto last = [&](double u, double v) {
    return std::min(kSide - 1, static_cast<int>(std::max(u, v) + reach) + 1);
  };
  for (int y = first(a.y, b.y); y <= last(a.y, b.y); ++y) {
    for (int x = first(a.x, b.x); x <= last(a.x, b.x); ++x) {
      const Point pixel{static_cast<double>(x), static_cast<double>(y)};
      const double away = std::sqrt(distance_squared(pixel, a, b));
      const double grey = 255 * std::clamp(half_width + 0.5 - away, 0.0, 1.0);
      double& there = canvas[static_cast<std::size_t>(y) * kSide + static_cast<std::size_t>(x)];
      there = std::max(there, grey);
    }
  }
}

void sprinkle(Canvas& canvas, Random& random) {
  for (double& pixel : canvas) pixel += random.between(-kNoise, kNoise);
  const auto speckles = static_cast<int>(random.between(0, kSpeckles));
  for (int i = 0; i < speckles; ++i) canvas[random.below(canvas.size())] = random.between(0, 255);
}

void draw(std::span<const Glyph> ways, Random& random, std::uint8_t* pixels) {
  const Glyph& glyph = ways[random.below(ways.size())];
  const Placement place = random_placement(random);
  const double half_width = random.between(kThinnest, kThickest);
  const auto wobbled = [&](Point p) {
    const double dx = random.between(-kWobble, kWobble);
    return Point{p.x + dx, p.y + random.between(-kWobble, kWobble)};
  };
  Canvas canvas{};
  for (Stroke stroke : glyph) {
    std::transform(stroke.begin(), stroke.end(), stroke.begin(), wobbled);
    Stroke line = smooth(stroke);
    std::transform(line.begin(), line.end(), line.begin(), place);
    for (std::size_t i = 1; i < line.size(); ++i) ink(canvas, line[i - 1], line[i], half_width);
  }
  sprinkle(canvas, random);
  std::transform(canvas.begin(), canvas.end(), pixels, [](double grey) {
    return static_cast<std::uint8_t>(std::clamp(grey, 0.0, 255.0));
  });
}

}  // namespace

LabelledImages draw_digits(std::size_t count, std::uint64_t seed) {
  constexpr std::size_t kPixels = std::tuple_size_v<Canvas>;
  LabelledImages images;
  images.rows = images.columns = kSide;
  images.pixels.resize(count * kPixels);
  images.labels.resize(count);
  const std::array<std::vector<Glyph>, 10> written = written_digits();
  peal::train::data::Random random({seed});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t digit = random.below(written.size());
    images.labels[i] = static_cast<std::uint8_t>(digit);
    draw(written[digit], random, images.pixels.data() + i * kPixels);
  }
  return images;
}

DigitSets generated_digits(std::uint64_t seed) {
  constexpr std::size_t kTrain = 9000, kTest = 1000;
  // Test digits use another seed, far from the seeds that follow `seed`.
  return {
      draw_digits(kTrain, seed),
      draw_digits(kTest, ~seed),
      "generated",
      fmt::format("generated digits (drawn by the program, not written by hand): {} to train on, "
                  "{} to test with",
                  kTrain,
                  kTest)};
}

}  // namespace mnist
