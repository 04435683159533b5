// The shapes of the ten digits: strokes of a pen in a square. `draw_digits` distorts and inks them.
#pragma once

#include <array>
#include <vector>

namespace mnist {

/// In the unit square: x to the right, y down.
struct Point {
  double x = 0;
  double y = 0;
};

/// The points of a pen stroke: two points give a straight line, more points a smooth curve.
using Stroke = std::vector<Point>;
using Glyph = std::vector<Stroke>;

/// For each digit its shapes; at least one.
std::array<std::vector<Glyph>, 10> written_digits();

/// The stroke as a line of many short straight pieces.
/// Source: Catmull and Rom 1974, uniform, the end points doubled.
Stroke smooth(const Stroke& stroke);

}  // namespace mnist
