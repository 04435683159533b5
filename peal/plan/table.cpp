#include "peal/plan/table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"

namespace peal::plan {
namespace {

constexpr std::string_view kRanks = "ranks";

/// "@host" and its like, by Where.
constexpr std::array<std::string_view, 4> kWhere = {"", "@host", "@hosts", "@levels"};

struct Unit {
  char letter;
  std::int64_t bytes;
};
/// The largest first.
constexpr std::array kUnits = {Unit{'g', std::int64_t{1} << 30},
                               Unit{'m', std::int64_t{1} << 20},
                               Unit{'k', std::int64_t{1} << 10}};

/// What any row takes.
std::string grammar() {
  std::vector<std::string_view> operations;
  for (const Operation operation : kAllCollectives) operations.push_back(name_of(operation));
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) names.push_back(algorithm.name);
  return fmt::format(
      "it takes OPERATION:FROM-TO:ALGORITHM, as in all_reduce:0-4k:inline, or "
      "all_reduce@hosts:4k-inf:2-4ranks:ring for up to 4 ranks on several hosts (@host: on one; "
      "@levels: on several, several on each); "
      "sizes in bytes, or with k, m or g, or inf; the operations {}; the algorithms {}",
      fmt::join(operations, ", "),
      fmt::join(names, ", "));
}

Error wrong(std::string_view row, const std::string& problem) {
  return Error(ErrorKind::kUsage, fmt::format("\"{}\": {}; {}", row, problem, grammar()));
}

std::string_view before(std::string_view text, char end) { return text.substr(0, text.find(end)); }

std::vector<std::string_view> split(std::string_view text, std::string_view at) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find_first_of(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string without_spaces(std::string_view text) {
  std::string rest(text);
  std::erase_if(rest, [](unsigned char letter) { return std::isspace(letter) != 0; });
  return rest;
}

/// "4096", "4k"; `most` for "inf".
std::optional<std::int64_t> parse_number(std::string_view text, std::int64_t most) {
  if (text == "inf") return most;
  std::int64_t unit = 1;
  for (const auto& [letter, bytes] : kUnits) {
    if (!text.empty() && std::tolower(static_cast<unsigned char>(text.back())) == letter) {
      unit = bytes;
    }
  }
  if (unit != 1) text.remove_suffix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || number < 0 || number > most / unit) return std::nullopt;
  return number * unit;
}

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

/// "4k-inf"
std::optional<Range> parse_range(std::string_view text, std::int64_t most) {
  const std::vector<std::string_view> ends = split(text, "-");
  if (ends.size() != 2) return std::nullopt;
  const auto first = parse_number(ends[0], most);
  const auto last = parse_number(ends[1], most);
  if (!first || !last) return std::nullopt;
  return Range{*first, *last};
}

/// One row, without spaces.
class RowParser {
 public:
  explicit RowParser(std::string_view text) : text_(text) {}

  Row parse() {
    std::vector<std::string_view> fields = split(text_, ":");
    if (fields.size() != 3 && fields.size() != 4) {
      throw wrong(text_, fmt::format("has {} fields between colons, not 3 or 4", fields.size()));
    }
    parse_what(fields.front());
    parse_sizes(fields[1]);
    if (fields.size() == 4) parse_ranks(fields[2]);
    parse_algorithm(fields.back());
    return row_;
  }

 private:
  void parse_what(std::string_view field) {
    const std::string_view name = before(field, '@');
    const auto* const operation = std::ranges::find(kAllCollectives, name, name_of_operation);
    if (operation == kAllCollectives.end()) {
      throw wrong(text_, fmt::format("there is no operation \"{}\"", name));
    }
    const std::string_view where = field.substr(name.size());
    const auto* const place = std::ranges::find(kWhere, where);
    if (place == kWhere.end()) {
      throw wrong(text_, fmt::format("\"{}\" is none of @host, @hosts and @levels", where));
    }
    row_.operation = *operation;
    row_.where = static_cast<Where>(place - kWhere.begin());
  }

  void parse_sizes(std::string_view field) {
    const auto range = parse_range(field, kAnySize.value);
    if (!range) throw wrong(text_, fmt::format("\"{}\" is no range of sizes", field));
    row_.over = range->first == 0 ? Bytes(-1) : Bytes(range->first);
    row_.up_to = Bytes(range->last);
    if (row_.over >= row_.up_to) throw wrong(text_, fmt::format("no size is in {}", field));
  }

  void parse_ranks(std::string_view field) {
    const bool has_unit = field.ends_with(kRanks);
    const auto range = has_unit
                           ? parse_range(field.substr(0, field.size() - kRanks.size()), kAnyRanks)
                           : std::nullopt;
    if (!range) throw wrong(text_, fmt::format("\"{}\" is nothing like 2-4ranks", field));
    row_.least_ranks = static_cast<int>(range->first);
    row_.most_ranks = static_cast<int>(range->last);
    if (row_.least_ranks > row_.most_ranks) {
      throw wrong(text_, fmt::format("no number of ranks is in {}", field));
    }
  }

  void parse_algorithm(std::string_view name) {
    const auto found = std::ranges::find(algorithms(), name, &Algorithm::name);
    if (found == algorithms().end()) {
      throw wrong(text_, fmt::format("there is no algorithm \"{}\"", name));
    }
    row_.algorithm = &*found;
  }

  static std::string_view name_of_operation(Operation operation) { return name_of(operation); }

  std::string_view text_;
  Row row_;
};

bool overlap(const Row& a, const Row& b) {
  const bool there =
      a.where == b.where || a.where == Where::kAnywhere || b.where == Where::kAnywhere;
  return a.operation == b.operation && there &&
         std::max(a.over, b.over) < std::min(a.up_to, b.up_to) &&
         std::max(a.least_ranks, b.least_ranks) <= std::min(a.most_ranks, b.most_ranks);
}

std::string size_text(Bytes size) {
  if (size == kAnySize) return "inf";
  for (const auto& [letter, bytes] : kUnits) {
    if (size.value > 0 && size.value % bytes == 0) {
      return fmt::format("{}{}", size.value / bytes, letter);
    }
  }
  return fmt::format("{}", size.value);
}

std::string ranks_text(const Row& row) {
  if (row.least_ranks <= 2 && row.most_ranks == kAnyRanks) return "";
  if (row.most_ranks == kAnyRanks) return fmt::format("{}-inf{}:", row.least_ranks, kRanks);
  return fmt::format("{}-{}{}:", row.least_ranks, row.most_ranks, kRanks);
}

}  // namespace

Table parse_table(std::string_view text) {
  Table table;
  for (const std::string_view line : split(text, "\n")) {
    for (const std::string_view part : split(before(line, '#'), ";")) {
      const std::string compact = without_spaces(part);
      if (compact.empty()) continue;
      const Row row = RowParser(compact).parse();
      const auto other = std::ranges::find_if(
          table.rows, [&](const Row& earlier) { return overlap(earlier, row); });
      if (other != table.rows.end()) {
        throw wrong(compact, fmt::format("it overlaps with \"{}\"", to_text(*other)));
      }
      table.rows.push_back(row);
    }
  }
  return table;
}

std::string to_text(const Row& row) {
  return fmt::format("{}{}:{}-{}:{}{}",
                     name_of(row.operation),
                     kWhere[static_cast<std::size_t>(row.where)],
                     size_text(std::max(row.over, Bytes(0))),
                     size_text(row.up_to),
                     ranks_text(row),
                     row.algorithm->name);
}

std::string to_text(const Table& table, std::string_view between) {
  std::vector<std::string> rows;
  for (const Row& row : table.rows) rows.push_back(to_text(row));
  return fmt::format("{}", fmt::join(rows, between));
}

}  // namespace peal::plan
