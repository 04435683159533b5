#include "peal/bench/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "peal/bench/canvas.h"

namespace peal::bench {
namespace {

constexpr double kPanelWidth = 460;
constexpr double kPanelHeight = 300;
constexpr double kLeft = 62;
constexpr double kGap = 84;
constexpr double kTop = 56;    // for the legend
constexpr double kRow = 392;   // a row with its title and its axes
constexpr double kTitle = 34;  // from a row's top to its panels
constexpr double kPageWidth = kLeft + 2 * kPanelWidth + kGap + 30;

/// A backend and its way: the name of a line.
using Name = std::pair<std::string, std::string>;

struct Look {
  Name name;
  Stroke stroke;
};

/// Colours that people who see few colours can tell apart (Okabe and Ito 2008). The floor is grey.
const std::array kLooks = {Look{{"peal", "registered"}, {"#d55e00", 2.5}},
                           Look{{"peal", "foreign"}, {"#e69f00", 2.5}},
                           Look{{"openmpi", "default"}, {"#0072b2", 1.5}},
                           Look{{"mpich", "default"}, {"#56b4e9", 1.5}},
                           Look{{"gloo", "default"}, {"#009e73", 1.5}},
                           Look{{"probe", "plain"}, {"#777777", 1.5, "6 3"}},
                           Look{{"probe", "streaming"}, {"#777777", 1.5, "2 3"}},
                           Look{{"stream", "two-threads"}, {"#aaaaaa", 1.5, "6 3"}},
                           Look{{"stream", "two-way"}, {"#777777", 1.5, "6 3"}},
                           Look{{"stream", "round-trip"}, {"#777777", 1.5, "2 3"}}};
const Stroke kOtherLook{"#cc79a7", 1.5};

Stroke stroke_of(const Name& name) {
  const auto look = std::ranges::find(kLooks, name, &Look::name);
  return look == kLooks.end() ? kOtherLook : look->stroke;
}

/// A row of the page, by what it is about; each line's results ascend by size.
using RowKey = std::tuple<Op, DType, int>;
using Lines = std::map<Name, std::vector<const Result*>>;

std::map<RowKey, Lines> rows_of(const std::vector<Result>& results) {
  std::map<RowKey, Lines> rows;
  for (const Result& result : results) {
    const Case& c = result.the_case;
    if (bytes_of(c) == 0_B) continue;
    rows[{c.op, c.dtype, c.ranks}][{result.backend, result.variant}].push_back(&result);
  }
  const auto size = [](const Result* result) { return bytes_of(result->the_case); };
  for (auto& [key, lines] : rows) {
    for (auto& [name, line] : lines) std::ranges::stable_sort(line, {}, size);
  }
  return rows;
}

/// What a panel shows: a value of a result, and the values at the ends of the rounds' range.
struct Quantity {
  std::string title;
  Scale::Kind kind = Scale::Kind::kLog;
  std::function<double(const Result&, double microseconds)> value;
  std::function<std::string(double)> label;
};

double bus_bandwidth_at(const Result& result, double microseconds) {
  return bus_bandwidth(result) * result.time.median / microseconds;
}

std::string time_label(double microseconds) {
  if (microseconds < 1) return fmt::format("{:.0f} ns", microseconds * 1000);
  if (microseconds < 1000) return fmt::format("{:.0f} us", microseconds);
  if (microseconds < 1e6) return fmt::format("{:.0f} ms", microseconds / 1000);
  return fmt::format("{:.0f} s", microseconds / 1e6);
}

const std::array<Quantity, 2>& quantities() {
  static const std::array<Quantity, 2> kBoth = {
      Quantity{"time of one operation",
               Scale::Kind::kLog,
               [](const Result&, double microseconds) { return microseconds; },
               time_label},
      Quantity{"bus bandwidth, 10^9 bytes per second",
               Scale::Kind::kLinear,
               bus_bandwidth_at,
               [](double value) { return fmt::format("{:g}", value); }}};
  return kBoth;
}

std::string bytes_label(double bytes) {
  if (bytes < 1024) return fmt::format("{:.0f}", bytes);
  if (bytes < 1048576) return fmt::format("{:.0f}K", bytes / 1024);
  if (bytes < 1073741824) return fmt::format("{:.0f}M", bytes / 1048576);
  return fmt::format("{:.0f}G", bytes / 1073741824);
}

double bytes_on_axis(const Result& result) {
  return static_cast<double>(bytes_of(result.the_case).value);
}

class Panel final {
 public:
  Panel(Canvas& canvas, const Lines& lines, const Quantity& quantity, Point corner)
      : canvas_(canvas),
        lines_(lines),
        quantity_(quantity),
        corner_(corner),
        x_(make_x()),
        y_(make_y()) {}

  void draw() {
    draw_axes();
    for (const auto& [name, line] : lines_) draw_line(line, stroke_of(name));
  }

 private:
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [name, line] : lines_) {
      for (const Result* result : line) visit(*result);
    }
  }

  Scale make_x() const {
    double low = HUGE_VAL;
    double high = 0;
    for_each([&](const Result& result) {
      low = std::min(low, bytes_on_axis(result));
      high = std::max(high, bytes_on_axis(result));
    });
    if (low == high) {  // one size: in the middle
      low /= 2;
      high *= 2;
    }
    return {Scale::Kind::kLog, low, high, corner_.x, corner_.x + kPanelWidth};
  }

  Scale make_y() const {
    double low = HUGE_VAL;
    double high = 0;
    for_each([&](const Result& result) {
      for (const double time : {result.time.least, result.time.most, result.time.median}) {
        low = std::min(low, quantity_.value(result, time));
        high = std::max(high, quantity_.value(result, time));
      }
    });
    const bool is_log = quantity_.kind == Scale::Kind::kLog;
    if (is_log) low = std::pow(10, std::floor(std::log10(low)));
    high = is_log ? std::pow(10, std::ceil(std::log10(high * 1.0001))) : high * 1.05;
    return {quantity_.kind, is_log ? low : 0, high, corner_.y + kPanelHeight, corner_.y};
  }

  void draw_axes() {
    const double right = corner_.x + kPanelWidth;
    const double bottom = corner_.y + kPanelHeight;
    const auto y_ticks =
        y_.kind() == Scale::Kind::kLog ? log_ticks(y_, 10, 9) : linear_ticks(y_, 6);
    for (const double tick : y_ticks) {
      canvas_.line({corner_.x, y_(tick)}, {right, y_(tick)}, {"#e4e4e4", 1});
      canvas_.text({corner_.x - 6, y_(tick) + 4}, Anchor::kEnd, quantity_.label(tick), "axis");
    }
    for (const double tick : log_ticks(x_, 4, 10)) {
      canvas_.line({x_(tick), corner_.y}, {x_(tick), bottom}, {"#f0f0f0", 1});
      canvas_.text({x_(tick), bottom + 16}, Anchor::kMiddle, bytes_label(tick), "axis");
    }
    canvas_.line({corner_.x, bottom}, {right, bottom}, {"#666666", 1});
    canvas_.line({corner_.x, corner_.y}, {corner_.x, bottom}, {"#666666", 1});
    canvas_.text({corner_.x, corner_.y - 6}, Anchor::kStart, quantity_.title, "axis");
    canvas_.text({right, bottom + 30}, Anchor::kEnd, "bytes", "axis");
  }

  void draw_line(const std::vector<const Result*>& line, const Stroke& stroke) {
    const auto points_at = [&](double Summary::*which) {
      std::vector<Point> points;
      for (const Result* result : line) {
        const double value = quantity_.value(*result, result->time.*which);
        points.push_back({x_(bytes_on_axis(*result)), y_(value)});
      }
      return points;
    };
    const std::vector<Point> medians = points_at(&Summary::median);
    canvas_.band(points_at(&Summary::most), points_at(&Summary::least), stroke.color);
    canvas_.polyline(medians, stroke);
    for (const Point& point : medians) canvas_.dot(point, stroke.width, stroke.color);
  }

  Canvas& canvas_;
  const Lines& lines_;
  const Quantity& quantity_;
  Point corner_;
  Scale x_, y_;
};

std::string title_of(const RowKey& key) {
  const auto& [op, dtype, ranks] = key;
  return fmt::format("{} of {} on {} ranks", name_of(op), name_of(dtype), ranks);
}

/// The names of all lines on the page, in the order of kLooks.
std::vector<Name> names_of(const std::map<RowKey, Lines>& rows) {
  std::vector<Name> names;
  for (const auto& [key, lines] : rows) {
    for (const auto& [name, line] : lines) {
      if (std::ranges::count(names, name) == 0) names.push_back(name);
    }
  }
  std::ranges::stable_sort(
      names, {}, [](const Name& name) { return std::ranges::find(kLooks, name, &Look::name); });
  return names;
}

void draw_legend(Canvas& canvas, const std::vector<Name>& names) {
  double x = kLeft;
  for (const auto& name : names) {
    const std::string words =
        name.second == "default" ? name.first : fmt::format("{}, {}", name.first, name.second);
    canvas.line({x, 24}, {x + 26, 24}, stroke_of(name));
    canvas.text({x + 32, 28}, Anchor::kStart, words);
    x += 56 + 7.0 * static_cast<double>(words.size());
  }
}

}  // namespace

std::string draw(const std::vector<Result>& results) {
  const std::map<RowKey, Lines> rows = rows_of(results);
  Canvas canvas;
  draw_legend(canvas, names_of(rows));
  double top = kTop;
  for (const auto& [key, lines] : rows) {
    canvas.text({kLeft, top + 6}, Anchor::kStart, title_of(key), "title");
    double left = kLeft;
    for (const Quantity& quantity : quantities()) {
      Panel(canvas, lines, quantity, {left, top + kTitle}).draw();
      left += kPanelWidth + kGap;
    }
    top += kRow;
  }
  return canvas.finish(kPageWidth, top);
}

}  // namespace peal::bench
