#include "peal/schedule/text.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::schedule {
namespace {

// ---- writing

std::string words(const Ranks& ranks) {
  if (ranks.count == 1 && ranks.stride == 1) return fmt::format("[{}]", ranks.first);
  const std::int64_t end = ranks.first + std::int64_t{ranks.count} * ranks.stride;
  if (ranks.stride == 1) return fmt::format("[{}:{}]", ranks.first, end);
  return fmt::format("[{}:{}:{}]", ranks.first, end, ranks.stride);
}

template <std::size_t N>
std::string words(const InlineVector<Slice, N>& slices) {
  std::string text;
  for (const Slice& slice : slices) {
    if (!text.empty()) text += ", ";
    text += fmt::format("{}{}{}@{}",
                        slice.holds == Holds::kPartial ? "partial " : "",
                        name_of(slice.space),
                        words(slice.ranks),
                        slice.offset.value);
  }
  return text;
}

std::string words(const Move& move) {
  return fmt::format("move {} -> {} x{}{}",
                     words(move.from),
                     words(move.to),
                     move.count.value,
                     move.finish == Finish::kYes ? " finish" : "");
}

std::string words(const Signal& signal) { return fmt::format("signal {}", signal.value); }

std::string words(const Wait& wait) {
  return fmt::format("wait {} {}", words(wait.ranks), wait.value);
}

/// Adds " registered=0,2" for word "registered" and {true, false, true}. Adds nothing if no rank is
/// listed.
void add_listed(std::string_view word, const std::vector<bool>& ranks, std::string& text) {
  const auto first = std::find(ranks.begin(), ranks.end(), true);
  if (first == ranks.end()) return;
  text += fmt::format(" {}", word);
  for (auto rank = first; rank != ranks.end(); rank = std::find(rank + 1, ranks.end(), true)) {
    text += fmt::format("{}{}", rank == first ? "=" : ",", rank - ranks.begin());
  }
}

std::string words(const Problem& problem) {
  const Problem standard;
  std::string text = fmt::format("{} ranks={}", name_of(problem.operation), problem.ranks);
  const auto add = [&](std::string_view key, std::int64_t value, std::int64_t left_out) {
    if (value != left_out) text += fmt::format(" {}={}", key, value);
  };
  add("per_host", problem.ranks_per_host, standard.ranks_per_host);
  add("root", problem.root, standard.root);
  add("count", problem.count.value, standard.count.value);
  for (const Elements& count : problem.counts) {
    text += fmt::format("{}{}", &count == &problem.counts.front() ? " counts=" : ",", count.value);
  }
  add("stage_limit", problem.stage_limit.value, standard.stage_limit.value);
  if (problem.in_place) text += " in_place";
  add_listed("in_place", problem.in_place_of, text);
  const auto& registered = problem.registered;
  if (!registered.empty() && std::ranges::all_of(registered, std::identity())) {
    text += " registered";
  } else {
    add_listed("registered", registered, text);
  }
  return text;
}

// ---- reading

/// The most ranks that a text may list. Limits the memory of the parser.
constexpr int kMostRanks = 1 << 20;

/// Reads a line from left to right.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(text.substr(0, text.find('#'))), number_(number) {
    skip_spaces();
    while (!rest_.empty() && is_space(rest_.back())) rest_.remove_suffix(1);
  }

  bool at_end() const { return rest_.empty(); }

  /// Skips the text and the spaces after it, if the line continues with it.
  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    skip_spaces();
    return true;
  }

  void expect(std::string_view text) {
    if (!accept(text)) fail(fmt::format("\"{}\"", text));
  }

  /// Reads a name: the letters and underscores that come next.
  std::string_view take_name() {
    const auto is_part = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    const auto end = std::find_if_not(rest_.begin(), rest_.end(), is_part);
    const std::string_view name = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    rest_.remove_prefix(name.size());
    skip_spaces();
    return name;
  }

  template <class Number>
  Number take() {
    Number number{};
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error == std::errc::result_out_of_range) fail("a smaller number");
    if (error != std::errc()) fail("a number");
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    skip_spaces();
    return number;
  }

  Elements take_elements() { return Elements(take<std::int64_t>()); }

  [[noreturn]] void fail(std::string_view expected) const {
    constexpr std::size_t kLongest = 40;
    throw Error(ErrorKind::kUsage,
                fmt::format("line {} of the schedule: expected {}, found \"{}\"",
                            number_,
                            expected,
                            rest_.substr(0, kLongest)));
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }
  void skip_spaces() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
  }

  std::string_view rest_;
  int number_;
};

Operation take_operation(Line& line) {
  const Line before = line;
  const std::string_view name = line.take_name();
  for (const Operation operation : kAllCollectives) {
    if (name == name_of(operation)) return operation;
  }
  before.fail("an operation");
}

Space take_space(Line& line) {
  const Line before = line;
  const std::string_view name = line.take_name();
  for (const Space space : {Space::kInput, Space::kOutput, Space::kStage, Space::kWire}) {
    if (name == name_of(space)) return space;
  }
  before.fail("input, output, stage or wire");
}

Ranks take_ranks(Line& line) {
  Ranks ranks;
  line.expect("[");
  ranks.first = line.take<Rank>();
  if (line.accept(":")) {
    const Line before = line;
    const std::int64_t distance = std::int64_t{line.take<Rank>()} - ranks.first;
    if (line.accept(":")) ranks.stride = line.take<int>();
    if (ranks.stride == 0 || distance % ranks.stride != 0 || distance / ranks.stride < 0 ||
        distance / ranks.stride > std::numeric_limits<int>::max()) {
      before.fail("an end and a stride that fit the first rank");
    }
    ranks.count = static_cast<int>(distance / ranks.stride);
  }
  line.expect("]");
  return ranks;
}

Slice take_slice(Line& line) {
  Slice slice;
  if (line.accept("partial")) slice.holds = Holds::kPartial;
  slice.space = take_space(line);
  slice.ranks = take_ranks(line);
  line.expect("@");
  slice.offset = line.take_elements();
  return slice;
}

template <std::size_t N>
void take_slices(Line& line, InlineVector<Slice, N>& slices) {
  do {
    if (slices.size() == slices.capacity()) line.fail(fmt::format("at most {} slices", N));
    slices.push_back(take_slice(line));
  } while (line.accept(","));
}

Move take_move(Line& line) {
  Move move;
  take_slices(line, move.from);
  line.expect("->");
  take_slices(line, move.to);
  line.expect("x");
  move.count = line.take_elements();
  if (line.accept("finish")) move.finish = Finish::kYes;
  return move;
}

Step take_step(Line& line) {
  if (line.accept("move")) return take_move(line);
  if (line.accept("signal")) return Signal{line.take<std::int64_t>()};
  if (line.accept("wait")) {
    const Ranks ranks = take_ranks(line);
    return Wait{ranks, line.take<std::int64_t>()};
  }
  line.fail("rank, move, signal or wait");
}

/// Lists all ranks of the group.
std::vector<bool> all_of_group(Line& line, std::string_view word, int ranks) {
  if (ranks < 1 || ranks > kMostRanks) line.fail(fmt::format("ranks=N before {}", word));
  return std::vector<bool>(static_cast<std::size_t>(ranks), true);
}

/// Reads a list of ranks in ascending order. Returns for each rank whether it is listed.
std::vector<bool> take_some_of_group(Line& line, std::string_view word, int ranks) {
  std::vector<bool> listed = all_of_group(line, word, ranks);
  listed.assign(listed.size(), false);
  Rank next = 0;
  do {
    const Line before = line;
    const auto rank = line.take<Rank>();
    if (rank < next || rank >= ranks) before.fail("ranks of the group, in ascending order");
    listed[static_cast<std::size_t>(rank)] = true;
    next = rank + 1;
  } while (line.accept(","));
  return listed;
}

Problem take_problem(Line& line) {
  Problem problem;
  problem.operation = take_operation(line);
  while (!line.at_end()) {
    if (line.accept("ranks=")) {
      problem.ranks = line.take<int>();
    } else if (line.accept("per_host=")) {
      problem.ranks_per_host = line.take<int>();
    } else if (line.accept("root=")) {
      problem.root = line.take<Rank>();
    } else if (line.accept("count=")) {
      problem.count = line.take_elements();
    } else if (line.accept("counts=")) {
      do problem.counts.push_back(line.take_elements());
      while (line.accept(","));
    } else if (line.accept("stage_limit=")) {
      problem.stage_limit = line.take_elements();
    } else if (line.accept("in_place=")) {
      problem.in_place_of = take_some_of_group(line, "in_place", problem.ranks);
    } else if (line.accept("in_place")) {
      problem.in_place = true;
    } else if (line.accept("registered=")) {
      problem.registered = take_some_of_group(line, "registered", problem.ranks);
    } else if (line.accept("registered")) {
      problem.registered = all_of_group(line, "registered", problem.ranks);
    } else {
      line.fail("a field of the problem");
    }
  }
  return problem;
}

Part take_part(Line& line, std::size_t rank) {
  if (line.take<std::int64_t>() != static_cast<std::int64_t>(rank)) {
    line.fail(fmt::format("rank {} (ranks come in order)", rank));
  }
  Part part;
  while (!line.at_end()) {
    if (line.accept("stage=")) {
      part.stage = line.take_elements();
    } else if (line.accept("span=")) {
      part.span = line.take<std::int64_t>();
    } else {
      line.fail("stage= or span=");
    }
  }
  return part;
}

}  // namespace

std::string to_text(const Step& step) {
  return std::visit([](const auto& kind) { return words(kind); }, step);
}

std::string to_text(const Problem& problem) { return words(problem); }

std::string to_text(const Schedule& schedule) {
  std::string text = words(schedule.problem) + "\n";
  for (std::size_t rank = 0; rank < schedule.parts.size(); ++rank) {
    const Part& part = schedule.parts[rank];
    text += fmt::format("rank {}", rank);
    if (part.stage != Elements(0)) text += fmt::format(" stage={}", part.stage.value);
    if (part.span != 0) text += fmt::format(" span={}", part.span);
    text += "\n";
    for (const Step& step : part.steps) text += fmt::format("  {}\n", to_text(step));
  }
  return text;
}

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  bool has_problem = false;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Line line(text.substr(0, end), ++number);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.at_end()) continue;
    if (!has_problem) {
      schedule.problem = take_problem(line);
      has_problem = true;
    } else if (line.accept("rank ")) {
      schedule.parts.push_back(take_part(line, schedule.parts.size()));
    } else if (schedule.parts.empty()) {
      line.fail("rank 0");
    } else {
      schedule.parts.back().steps.push_back(take_step(line));
    }
    if (!line.at_end()) line.fail("nothing more");
  }
  if (!has_problem) Line("", number).fail("a problem");
  return schedule;
}

}  // namespace peal::schedule
