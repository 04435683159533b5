#include "peal/observe/rank_end.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"

namespace peal::observe {
namespace {

constexpr std::size_t kLongestText = 1024;

Error malformed_end() {
  return Error(ErrorKind::kMismatch,
               "how a rank ended is one line: rank, process, nanoseconds since 1970, fate, text");
}

/// Takes what stands before the next space off `rest`.
std::string_view take_word(std::string_view& rest) {
  const std::size_t end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  return word;
}

template <class Number>
Number take_number(std::string_view& rest, Number most) {
  const std::string_view word = take_word(rest);
  Number number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool is_number = error == std::errc() && end == word.data() + word.size();
  if (!is_number || number < 0 || number > most) throw malformed_end();
  return number;
}

RankEnd::Fate take_fate(std::string_view& rest) {
  const std::string_view word = take_word(rest);
  const auto* const found =
      std::ranges::find_if(kAllFates, [&](RankEnd::Fate fate) { return name_of(fate) == word; });
  if (found == kAllFates.end()) throw malformed_end();
  return *found;
}

}  // namespace

std::string_view name_of(RankEnd::Fate fate) {
  switch (fate) {
    case RankEnd::Fate::kRuns:
      return "runs";
    case RankEnd::Fate::kStandsStill:
      return "stands_still";
    case RankEnd::Fate::kStopped:
      return "stopped";
    case RankEnd::Fate::kEndedWell:
      return "ended_well";
    case RankEnd::Fate::kEndedBadly:
      return "ended_badly";
    case RankEnd::Fate::kEndedByLauncher:
      return "ended_by_launcher";
  }
  return "invalid";
}

std::string to_line(const RankEnd& end) {
  std::string text = printable_line(end.text);
  if (text.size() > kLongestText) {
    std::size_t size = kLongestText;  // no character is cut in two
    while ((static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
    text.resize(size);
  }
  return fmt::format("{} {} {} {} {}",
                     end.rank,
                     end.pid,
                     end.at.time_since_epoch().count(),
                     name_of(end.fate),
                     text);
}

RankEnd parse_rank_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  constexpr std::int64_t kLatest = std::int64_t{1} << 62;
  RankEnd end;
  end.rank = take_number<Rank>(line, kMostRanks - 1);
  end.pid = take_number<std::uint64_t>(line, ~std::uint64_t{0});
  end.at = WallTime(std::chrono::nanoseconds(take_number<std::int64_t>(line, kLatest)));
  end.fate = take_fate(line);
  if (line.size() > kLongestText || printable(line) != line) throw malformed_end();
  end.text = line;
  return end;
}

}  // namespace peal::observe
