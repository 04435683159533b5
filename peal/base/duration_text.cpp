#include "peal/base/duration_text.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

#include "peal/base/parse_number.h"

namespace peal {
namespace {

struct Unit {
  std::string_view name;
  std::int64_t milliseconds;
};
/// The largest first.
constexpr std::array kUnits = {Unit{"d", 86'400'000},
                               Unit{"h", 3'600'000},
                               Unit{"m", 60'000},
                               Unit{"s", 1'000},
                               Unit{"ms", 1}};
constexpr std::int64_t kMost = std::int64_t{100} * 366 * 86'400'000;

/// Removes the characters at the front of `text` that are in `set`, and returns them.
std::string_view take_front(std::string_view& text, std::string_view set) {
  const std::size_t size = std::min(text.find_first_not_of(set), text.size());
  const std::string_view front = text.substr(0, size);
  text.remove_prefix(size);
  return front;
}

/// `number`, as in "90" and "1.5", times `unit`; nothing if the result has a fraction.
std::optional<std::int64_t> times(std::string_view number, std::int64_t unit) {
  const std::size_t point = number.find('.');
  const auto whole = try_parse_number<std::int64_t>(number.substr(0, point));
  if (!whole || *whole < 0 || *whole > kMost / unit) return std::nullopt;
  if (point == std::string_view::npos) return *whole * unit;
  const std::string_view digits = number.substr(point + 1);
  const auto part = try_parse_number<std::int64_t>(digits);
  if (digits.size() > 9 || !part || *part < 0) return std::nullopt;
  std::int64_t scale = 1;
  for (std::size_t i = 0; i < digits.size(); ++i) scale *= 10;
  if (*part * unit % scale != 0) return std::nullopt;
  return *whole * unit + *part * unit / scale;
}

}  // namespace

std::optional<std::chrono::milliseconds> try_parse_duration(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::int64_t sum = 0;
  std::size_t next = 0;  // the units that may follow
  while (!text.empty()) {
    const std::string_view number = take_front(text, "0123456789.");
    const std::string_view name = take_front(text, "dhms");
    while (next < kUnits.size() && kUnits[next].name != name) ++next;
    if (next == kUnits.size()) return std::nullopt;
    const auto part = times(number, kUnits[next].milliseconds);
    if (!part || *part > kMost - sum) return std::nullopt;
    sum += *part;
    ++next;
  }
  return std::chrono::milliseconds(sum);
}

std::string duration_text(std::chrono::milliseconds duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0s";
  for (const Unit& unit : kUnits) {
    if (count % unit.milliseconds == 0) {
      return fmt::format("{}{}", count / unit.milliseconds, unit.name);
    }
  }
  return fmt::format("{}ms", count);  // not reached: the last unit divides every count
}

}  // namespace peal
