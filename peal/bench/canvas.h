// What a plot is made of: scales and SVG elements as text. Pure. Called by plot.cpp alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace peal::bench {

struct Point {
  double x = 0;
  double y = 0;
};

/// Where values lie on an axis: [low, high] in the data goes to [begin, end] on the page.
class Scale final {
 public:
  enum class Kind : unsigned char { kLinear, kLog };

  Scale(Kind kind, double low, double high, double begin, double end);
  double operator()(double value) const;
  Kind kind() const { return kind_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  Kind kind_;
  double low_, high_, begin_, end_;
};

/// Powers of `base` that lie on the axis, thinned out to `most` at most.
std::vector<double> log_ticks(const Scale& scale, double base, int most);
/// Round numbers from 0 (1, 2 or 5 times a power of ten apart) on a linear axis, `most` at most.
std::vector<double> linear_ticks(const Scale& scale, int most);

struct Stroke {
  std::string color;
  double width = 1;
  std::string dashes = {};  // as stroke-dasharray; empty: a full line
};

enum class Anchor : unsigned char { kStart, kMiddle, kEnd };

/// Elements, in the order in which they are drawn.
class Canvas final {
 public:
  void line(Point from, Point to, const Stroke& stroke);
  void polyline(const std::vector<Point>& points, const Stroke& stroke);
  void dot(Point at, double radius, const std::string& color);
  /// A see-through area between `upper` and `lower`, both from left to right.
  void band(const std::vector<Point>& upper,
            const std::vector<Point>& lower,
            const std::string& color);
  /// `style`: a class of the page's style sheet; "" for plain text.
  void text(Point at, Anchor anchor, std::string_view words, std::string_view style = "");
  /// The page as a file.
  std::string finish(double width, double height) const;

 private:
  std::string elements_;
};

}  // namespace peal::bench
