#include "peal/config/fault_plan.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/size_text.h"
#include "peal/base/split.h"

namespace peal {
namespace {

constexpr Rank kHighestRank = 1'000'000;
constexpr std::int64_t kLastOperation = 1'000'000'000'000;
constexpr Timeout kLongest = std::chrono::hours(24);

/// Indexed by LinkFault::Kind and LinkFault::Channels.
constexpr std::array<std::string_view, 5> kLinkKinds = {"delay", "slow", "drop", "cut", "corrupt"};
constexpr std::array<std::string_view, 3> kChannels = {"", "data", "mail"};

Error wrong(const std::string& problem) { return Error(ErrorKind::kUsage, problem); }

std::optional<Rank> try_parse_rank(std::string_view text) {
  const auto rank = try_parse_number<Rank>(text);
  return rank && *rank >= 0 && *rank <= kHighestRank ? rank : std::nullopt;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  const auto is_space = [](unsigned char letter) { return std::isspace(letter) != 0; };
  auto at = text.begin();
  while ((at = std::find_if_not(at, text.end(), is_space)) != text.end()) {
    const auto end = std::find_if(at, text.end(), is_space);
    words.emplace_back(at, end);
    at = end;
  }
  return words;
}

/// Parses one fault, word by word.
class FaultParser {
 public:
  explicit FaultParser(std::string_view text) : words_(words_of(text)) {}

  void parse_into(FaultPlan& plan) {
    if (try_take("rank")) {
      plan.processes.push_back(parse_process());
    } else if (try_take("link")) {
      plan.links.push_back(parse_link());
    } else {
      throw unexpected("rank or link");
    }
    if (next_ < words_.size()) throw unexpected("the end");
  }

 private:
  ProcessFault parse_process() {
    ProcessFault fault;
    fault.rank = take("the number of a rank", try_parse_rank);
    if (try_take("freeze")) {
      fault.kind = ProcessFault::Kind::kFreeze;
    } else if (!try_take("kill")) {
      throw unexpected("kill or freeze");
    }
    expect("at");
    expect("operation");
    fault.operation = take("the number of an operation, from 1 on", [](std::string_view word) {
      const auto number = try_parse_number<std::int64_t>(word);
      return number && *number >= 1 && *number <= kLastOperation ? number : std::nullopt;
    });
    if (fault.kind == ProcessFault::Kind::kFreeze && try_take("for")) fault.length = take_time();
    return fault;
  }

  LinkFault parse_link() {
    LinkFault fault;
    take_ends(fault);
    for (const auto channels : {LinkFault::Channels::kData, LinkFault::Channels::kMail}) {
      if (try_take(kChannels[static_cast<std::size_t>(channels)])) {
        fault.channels = channels;
        break;
      }
    }
    fault.kind = take_link_kind();
    switch (fault.kind) {
      case LinkFault::Kind::kDelay:
        fault.delay = take_time();
        break;
      case LinkFault::Kind::kSlow:
        fault.per_second = take("bytes for each second, as in 1M/s", try_parse_rate);
        break;
      case LinkFault::Kind::kDrop:
      case LinkFault::Kind::kCut:
      case LinkFault::Kind::kCorrupt:
        expect("after");
        fault.after = take("a number of bytes, as in 4096, 4K or 1M", try_parse_size);
        break;
    }
    return fault;
  }

  /// "0-1", "0>1"
  void take_ends(LinkFault& fault) {
    constexpr std::string_view kTaken = "two ranks, as in 0-1, or 0>1 for one direction";
    const std::string_view word = word_or_nothing();
    const std::size_t middle = word.find_first_of("->");
    const auto from = try_parse_rank(word.substr(0, middle));
    const auto to = try_parse_rank(middle < word.size() ? word.substr(middle + 1) : "");
    if (!from || !to) throw unexpected(kTaken);
    if (*from == *to) throw unexpected("two ranks that differ");
    fault.from = *from;
    fault.to = *to;
    fault.ways = word[middle] == '>' ? LinkFault::Ways::kForth : LinkFault::Ways::kBoth;
    ++next_;
  }

  LinkFault::Kind take_link_kind() {
    const auto* const kind = std::ranges::find(kLinkKinds, word_or_nothing());
    if (kind == kLinkKinds.end()) {
      const bool has_channel = std::ranges::find(kChannels, words_[next_ - 1]) != kChannels.end();
      throw unexpected(
          fmt::format("{}{}", has_channel ? "" : "data, mail, ", fmt::join(kLinkKinds, ", ")));
    }
    ++next_;
    return static_cast<LinkFault::Kind>(kind - kLinkKinds.begin());
  }

  static std::optional<Bytes> try_parse_rate(std::string_view word) {
    constexpr std::string_view kEach = "/s";
    if (!word.ends_with(kEach)) return std::nullopt;
    const auto size = try_parse_size(word.substr(0, word.size() - kEach.size()));
    return size && *size > 0_B ? size : std::nullopt;
  }

  /// "20 ms", "20ms", "2 s"
  Timeout take_time() {
    constexpr std::string_view kTaken = "a time up to a day, as in 20 ms or 2 s";
    const std::string_view word = word_or_nothing();
    const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
    const auto number = try_parse_number<std::int64_t>(word.substr(0, digits));
    if (!number) throw unexpected(kTaken);
    const bool is_apart = digits == word.size() && next_ + 1 < words_.size();
    const std::string_view unit = is_apart ? words_[next_ + 1] : word.substr(digits);
    const std::int64_t factor = unit == "s" ? 1000 : 1;
    if (*number < 1 || *number > kLongest.count() / factor) throw unexpected(kTaken);
    if (is_apart) ++next_;
    if (unit != "s" && unit != "ms") throw unexpected(kTaken);
    ++next_;
    return Timeout(*number * factor);
  }

  template <class Parse>
  typename std::invoke_result_t<Parse, std::string_view>::value_type take(std::string_view what,
                                                                          Parse parse) {
    const auto value = parse(word_or_nothing());
    if (!value) throw unexpected(what);
    ++next_;
    return *value;
  }

  std::string_view word_or_nothing() const {
    return next_ < words_.size() ? words_[next_] : std::string_view();
  }
  bool try_take(std::string_view word) {
    const bool is_there = word_or_nothing() == word;
    if (is_there) ++next_;
    return is_there;
  }
  void expect(std::string_view word) {
    if (!try_take(word)) throw unexpected(word);
  }

  Error unexpected(std::string_view taken) const {
    const bool is_over = next_ >= words_.size();
    return wrong(fmt::format(
        "found {}, expected {}", is_over ? "nothing" : quoted_beginning(words_[next_]), taken));
  }

  std::vector<std::string_view> words_;
  std::size_t next_ = 0;
};

std::string time_text(Timeout time) {
  const bool is_whole = time.count() % 1000 == 0;
  return is_whole ? fmt::format("{} s", time.count() / 1000) : fmt::format("{} ms", time.count());
}

std::string short_text(Bytes size) { return size_text(size, SizeStyle::kShort); }

/// "delay 20 ms"
std::string what_text(const LinkFault& fault) {
  const std::string_view kind = kLinkKinds[static_cast<std::size_t>(fault.kind)];
  switch (fault.kind) {
    case LinkFault::Kind::kDelay:
      return fmt::format("{} {}", kind, time_text(fault.delay));
    case LinkFault::Kind::kSlow:
      return fmt::format("{} {}/s", kind, short_text(fault.per_second));
    case LinkFault::Kind::kDrop:
    case LinkFault::Kind::kCut:
    case LinkFault::Kind::kCorrupt:
      return fmt::format("{} after {}", kind, short_text(fault.after));
  }
  return "";
}

}  // namespace

FaultPlan parse_faults(std::string_view text) {
  FaultPlan plan;
  const bool has_lines = text.find('\n') != std::string_view::npos;
  int line = 0;
  int fault = 0;
  for (const std::string_view row : split(text, '\n')) {
    ++line;
    for (const std::string_view part : split(row.substr(0, row.find('#')), ';')) {
      if (words_of(part).empty()) continue;
      ++fault;
      try {
        if (static_cast<std::size_t>(fault) > kMostFaults) {
          throw wrong(fmt::format("a plan may contain at most {} faults", kMostFaults));
        }
        FaultParser(part).parse_into(plan);
      } catch (const Error& error) {
        const std::string_view whole(words_of(part).front().begin(), part.end());
        throw wrong(fmt::format("{} {}, {}: {}",
                                has_lines ? "line" : "fault",
                                has_lines ? line : fault,
                                quoted_beginning(whole),
                                error.message()));
      }
    }
  }
  return plan;
}

std::string to_text(const ProcessFault& fault) {
  const bool is_kill = fault.kind == ProcessFault::Kind::kKill;
  return fmt::format("rank {} {} at operation {}{}",
                     fault.rank,
                     is_kill ? "kill" : "freeze",
                     fault.operation,
                     fault.length ? " for " + time_text(*fault.length) : "");
}

std::string to_text(const LinkFault& fault) {
  const std::string_view channel = kChannels[static_cast<std::size_t>(fault.channels)];
  return fmt::format("link {}{}{}{}{} {}",
                     fault.from,
                     fault.ways == LinkFault::Ways::kForth ? '>' : '-',
                     fault.to,
                     channel.empty() ? "" : " ",
                     channel,
                     what_text(fault));
}

std::vector<std::string> to_texts(const FaultPlan& plan) {
  std::vector<std::string> texts;
  for (const ProcessFault& fault : plan.processes) texts.push_back(to_text(fault));
  for (const LinkFault& fault : plan.links) texts.push_back(to_text(fault));
  return texts;
}

std::string to_text(const FaultPlan& plan) {
  return fmt::format("{}", fmt::join(to_texts(plan), "; "));
}

void check_ranks(const FaultPlan& plan, int world_size) {
  const auto check = [&](Rank rank, const auto& fault) {
    if (rank < world_size) return;
    throw wrong(fmt::format("\"{}\": there is no rank {} in a job of {}, whose ranks are 0 to {}",
                            to_text(fault),
                            rank,
                            world_size,
                            world_size - 1));
  };
  for (const ProcessFault& fault : plan.processes) check(fault.rank, fault);
  for (const LinkFault& fault : plan.links) check(std::max(fault.from, fault.to), fault);
}

std::vector<LinkFault> links_within(const FaultPlan& plan, std::span<const Rank> world_ranks) {
  std::vector<LinkFault> links;
  for (LinkFault fault : plan.links) {
    const auto from = std::ranges::find(world_ranks, fault.from);
    const auto to = std::ranges::find(world_ranks, fault.to);
    if (from == world_ranks.end() || to == world_ranks.end()) continue;
    fault.from = static_cast<Rank>(from - world_ranks.begin());
    fault.to = static_cast<Rank>(to - world_ranks.begin());
    links.push_back(fault);
  }
  return links;
}

}  // namespace peal
