#include "peal/observe/rank_end.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"

namespace peal::observe {
namespace {

constexpr std::size_t kLongestText = 1024;

Error malformed_end() {
  return Error(ErrorKind::kMismatch,
               "malformed end of a rank; expected one line: rank, process, nanoseconds since 1970, "
               "state, text");
}

/// Removes the word up to the next space from `rest`, and returns it.
std::string_view take_word(std::string_view& rest) {
  const std::size_t end = rest.find(' ');
  const std::string_view word = rest.substr(0, end);
  rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  return word;
}

template <class Number>
Number take_number(std::string_view& rest, Number most) {
  const auto number = try_parse_number<Number>(take_word(rest));
  if (!number || *number < 0 || *number > most) throw malformed_end();
  return *number;
}

RankEnd::State take_state(std::string_view& rest) {
  const std::string_view word = take_word(rest);
  const auto* const found = std::ranges::find_if(
      kAllRankStates, [&](RankEnd::State state) { return name_of(state) == word; });
  if (found == kAllRankStates.end()) throw malformed_end();
  return *found;
}

}  // namespace

std::string_view name_of(RankEnd::State state) {
  switch (state) {
    case RankEnd::State::kRuns:
      return "runs";
    case RankEnd::State::kStopped:
      return "stopped";
    case RankEnd::State::kEndedWhileStopped:
      return "ended_while_stopped";
    case RankEnd::State::kEndedWell:
      return "ended_well";
    case RankEnd::State::kEndedBadly:
      return "ended_badly";
    case RankEnd::State::kKilled:
      return "killed";
    case RankEnd::State::kEndedByLauncher:
      return "ended_by_launcher";
  }
  return "invalid";
}

ErrorCause cause_of(RankEnd::State state) {
  switch (state) {
    case RankEnd::State::kRuns:
      return ErrorCause::kUnknown;
    case RankEnd::State::kStopped:
    case RankEnd::State::kEndedWhileStopped:
      return ErrorCause::kStopped;
    case RankEnd::State::kKilled:
      return ErrorCause::kKilled;
    case RankEnd::State::kEndedWell:
    case RankEnd::State::kEndedBadly:
    case RankEnd::State::kEndedByLauncher:
      return ErrorCause::kExited;
  }
  return ErrorCause::kUnknown;
}

std::string to_line(const RankEnd& end) {
  std::string text = printable_line(end.text);
  if (text.size() > kLongestText) {
    std::size_t size = kLongestText;  // moved back to the start of a UTF-8 character
    while ((static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) --size;
    text.resize(size);
  }
  return fmt::format("{} {} {} {} {}",
                     end.rank,
                     end.pid,
                     end.at.time_since_epoch().count(),
                     name_of(end.state),
                     text);
}

RankEnd parse_rank_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  constexpr std::int64_t kLatest = std::int64_t{1} << 62;
  RankEnd end;
  end.rank = take_number<Rank>(line, kMostRanks - 1);
  end.pid = take_number<std::uint64_t>(line, ~std::uint64_t{0});
  end.at = WallTime(std::chrono::nanoseconds(take_number<std::int64_t>(line, kLatest)));
  end.state = take_state(line);
  if (line.size() > kLongestText || printable(line) != line) throw malformed_end();
  end.text = line;
  return end;
}

}  // namespace peal::observe
