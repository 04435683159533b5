#include "peal/plan/table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/size_text.h"

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

constexpr std::string_view kShape =
    "OPERATION:FROM-TO[:A-Branks]:ALGORITHM, as in all_reduce:0-4k:inline, with semicolons between "
    "rows";
constexpr std::string_view kSizes = "FROM-TO in bytes, as in 0-4k, 64k-1m or 1m-inf";

Error wrong(const std::string& problem) { return Error(ErrorKind::kUsage, problem); }

/// So much of a text that is wrong that a reader finds it.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  const bool is_long = text.size() > kLongest;
  return fmt::format("\"{}{}\"", text.substr(0, kLongest), is_long ? "..." : "");
}

std::string operation_names() {
  std::vector<std::string_view> names;
  for (const Operation operation : kAllCollectives) names.push_back(name_of(operation));
  return fmt::format("{}", fmt::join(names, ", "));
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

/// "4096", "4k", "inf"
std::optional<Bytes> try_parse_end(std::string_view text) {
  return text == "inf" ? kAnySize : try_parse_size(text);
}

/// "4", "inf"
std::optional<int> try_parse_ranks(std::string_view text) {
  if (text == "inf") return kAnyRanks;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// "4k-inf", with ends that `parse` reads.
template <class End>
std::optional<std::pair<End, End>> try_parse_range(std::string_view text,
                                                   std::optional<End> (*parse)(std::string_view)) {
  const std::vector<std::string_view> ends = split(text, "-");
  if (ends.size() != 2) return std::nullopt;
  const auto first = parse(ends[0]);
  const auto last = parse(ends[1]);
  if (!first || !last) return std::nullopt;
  return std::pair(*first, *last);
}

/// One row, without spaces.
class RowParser {
 public:
  explicit RowParser(std::string_view text) : text_(text) {}

  Row parse() {
    std::vector<std::string_view> fields = split(text_, ":");
    if (fields.size() != 3 && fields.size() != 4) {
      throw wrong(fmt::format("has {} {} between colons; it takes {}",
                              fields.size(),
                              fields.size() == 1 ? "field" : "fields",
                              kShape));
    }
    parse_what(fields.front());
    parse_sizes(fields[1]);
    if (fields.size() == 4) parse_ranks(fields[2]);
    row_.algorithm = &algorithm_named(fields.back());
    return row_;
  }

 private:
  void parse_what(std::string_view field) {
    const std::string_view name = before(field, '@');
    const auto* const operation = std::ranges::find(kAllCollectives, name, name_of_operation);
    if (operation == kAllCollectives.end()) {
      throw wrong(
          fmt::format("there is no operation {}; there are {}", quoted(name), operation_names()));
    }
    const std::string_view where = field.substr(name.size());
    const auto* const place = std::ranges::find(kWhere, where);
    if (place == kWhere.end()) {
      throw wrong(fmt::format("{} is none of @host, @hosts and @levels", quoted(where)));
    }
    row_.operation = *operation;
    row_.where = static_cast<Where>(place - kWhere.begin());
  }

  void parse_sizes(std::string_view field) {
    const auto range = try_parse_range(field, try_parse_end);
    if (!range) {
      throw wrong(fmt::format("{} is no range of sizes; it takes {}", quoted(field), kSizes));
    }
    const auto [first, last] = *range;
    row_.over = first == 0_B ? Bytes(-1) : first;
    row_.up_to = last;
    if (row_.over >= row_.up_to) {
      throw wrong(fmt::format("no size is in {}; it takes {}", field, kSizes));
    }
  }

  void parse_ranks(std::string_view field) {
    const bool has_unit = field.ends_with(kRanks);
    const auto range =
        has_unit ? try_parse_range(field.substr(0, field.size() - kRanks.size()), try_parse_ranks)
                 : std::nullopt;
    if (!range) {
      throw wrong(
          fmt::format("{} is no range of ranks, as in 2-4ranks or 5-infranks", quoted(field)));
    }
    std::tie(row_.least_ranks, row_.most_ranks) = *range;
    if (row_.least_ranks > row_.most_ranks) {
      throw wrong(fmt::format("no number of ranks is in {}: the smaller comes first", field));
    }
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

void add_row(const Row& row, Table& table) {
  const auto other =
      std::ranges::find_if(table.rows, [&](const Row& earlier) { return overlap(earlier, row); });
  if (other != table.rows.end()) {
    throw wrong(fmt::format("it overlaps with row {}, \"{}\"; no two rows may be about the same",
                            other - table.rows.begin() + 1,
                            to_text(*other)));
  }
  table.rows.push_back(row);
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
      try {
        add_row(RowParser(compact).parse(), table);
      } catch (const Error& error) {
        throw wrong(
            fmt::format("row {}, {}: {}", table.rows.size() + 1, quoted(compact), error.message()));
      }
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
