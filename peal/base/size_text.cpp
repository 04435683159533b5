#include "peal/base/size_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace peal {
namespace {

struct Unit {
  int shift;
  std::string_view short_name, long_name;
};
/// The largest first.
constexpr std::array kUnits = {Unit{30, "g", " GiB"}, Unit{20, "m", " MiB"}, Unit{10, "k", " KiB"}};
constexpr Unit kByte = {0, "", " B"};

/// The shift of a unit in bits: 10 for "K", "kb" and "KiB".
std::optional<int> try_parse_unit(std::string_view text) {
  constexpr std::string_view kLetters = "kmg";
  if (text.empty()) return 0;
  std::string unit(text);
  std::ranges::transform(unit, unit.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  const std::size_t power = kLetters.find(unit.front());
  unit.erase(0, 1);
  const bool is_unit =
      power != std::string_view::npos && (unit.empty() || unit == "b" || unit == "ib");
  if (!is_unit) return std::nullopt;
  return 10 * (static_cast<int>(power) + 1);
}

}  // namespace

std::optional<Bytes> try_parse_size(std::string_view text) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const char* const end = text.data() + text.size();
  std::uint64_t number = 0;
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  const auto shift = try_parse_unit({unit, end});
  if (!shift || number > (kMost >> *shift)) return std::nullopt;
  return Bytes(static_cast<std::int64_t>(number << *shift));
}

std::string size_text(Bytes size, SizeStyle style) {
  const auto is_whole = [&](const Unit& unit) {
    return size > 0_B && size.value % (std::int64_t{1} << unit.shift) == 0;
  };
  const auto* const found = std::ranges::find_if(kUnits, is_whole);
  const Unit& unit = found == kUnits.end() ? kByte : *found;
  return fmt::format("{}{}",
                     size.value >> unit.shift,
                     style == SizeStyle::kShort ? unit.short_name : unit.long_name);
}

}  // namespace peal
