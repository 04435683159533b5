#include "peal/bench/canvas.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace peal::bench {
namespace {

constexpr const char* kStyle =
    "text{font:12px sans-serif;fill:#333}.title{font-weight:bold;font-size:14px}"
    ".axis{fill:#666;font-size:11px}";

std::string escape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else if (c == '"') {
      escaped += "&quot;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string list_of(const std::vector<Point>& points) {
  std::string list;
  for (const Point& p : points) list += fmt::format("{:.1f},{:.1f} ", p.x, p.y);
  return list;
}

std::string attributes(const Stroke& stroke) {
  std::string text = fmt::format("stroke=\"{}\" stroke-width=\"{}\"", stroke.color, stroke.width);
  if (!stroke.dashes.empty()) text += fmt::format(" stroke-dasharray=\"{}\"", stroke.dashes);
  return text;
}

}  // namespace

Scale::Scale(Kind kind, double low, double high, double begin, double end)
    : kind_(kind), low_(low), high_(high), begin_(begin), end_(end) {}

double Scale::operator()(double value) const {
  const double part = kind_ == Kind::kLog ? std::log(value / low_) / std::log(high_ / low_)
                                          : (value - low_) / (high_ - low_);
  return begin_ + part * (end_ - begin_);
}

std::vector<double> log_ticks(const Scale& scale, double base, int most) {
  const auto power_of = [&](double value) { return std::log(value) / std::log(base); };
  const int first = static_cast<int>(std::ceil(power_of(scale.low()) - 1e-9));
  const int last = static_cast<int>(std::floor(power_of(scale.high()) + 1e-9));
  const int step = std::max(1, (last - first + most) / most);
  std::vector<double> ticks;
  for (int power = first; power <= last; power += step) ticks.push_back(std::pow(base, power));
  return ticks;
}

std::vector<double> linear_ticks(const Scale& scale, int most) {
  const double rough = scale.high() / most;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5, 2, 1}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  for (double tick = 0; tick <= scale.high() * (1 + 1e-9); tick += step) ticks.push_back(tick);
  return ticks;
}

void Canvas::line(Point from, Point to, const Stroke& stroke) { polyline({from, to}, stroke); }

void Canvas::polyline(const std::vector<Point>& points, const Stroke& stroke) {
  elements_ += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" {}/>\n", list_of(points), attributes(stroke));
}

void Canvas::dot(Point at, double radius, const std::string& color) {
  elements_ += fmt::format(
      "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", at.x, at.y, radius, color);
}

void Canvas::band(const std::vector<Point>& upper,
                  const std::vector<Point>& lower,
                  const std::string& color) {
  std::vector<Point> around = upper;
  around.insert(around.end(), lower.rbegin(), lower.rend());
  elements_ += fmt::format(
      "<polygon points=\"{}\" fill=\"{}\" fill-opacity=\"0.15\"/>\n", list_of(around), color);
}

void Canvas::text(Point at, Anchor anchor, std::string_view words, std::string_view style) {
  const char* const side = anchor == Anchor::kStart    ? "start"
                           : anchor == Anchor::kMiddle ? "middle"
                                                       : "end";
  elements_ +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" class=\"{}\">{}</text>\n",
                  at.x,
                  at.y,
                  side,
                  style,
                  escape(words));
}

std::string Canvas::finish(double width, double height) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\">\n<style>{2}</style>\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "{3}</svg>\n",
      width,
      height,
      kStyle,
      elements_);
}

}  // namespace peal::bench
