// How the ten digits are written: strokes of a pen in a square. `draw_digits` bends and inks them.
#pragma once

#include <array>
#include <vector>

namespace peal::train::data {

/// In the unit square: x to the right, y down.
struct Point {
  double x = 0;
  double y = 0;
};

/// The pen's way through these points: straight between two, a smooth curve through more.
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// For each digit the ways in which it is written; at least one.
std::array<std::vector<Glyph>, 10> written_digits();

/// The stroke as a line of many short straight pieces.
/// Source: Catmull and Rom 1974, uniform, the end points doubled.
Stroke smooth(const Stroke& stroke);

}  // namespace peal::train::data
