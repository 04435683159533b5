#include "peal/plan/table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"
#include "peal/base/size_text.h"
#include "peal/base/split.h"

namespace peal::plan {
namespace {

constexpr std::string_view kRanks = "ranks";

/// "@host" and the others, by Where.
constexpr std::array<std::string_view, 4> kWhere = {"", "@host", "@hosts", "@levels"};

constexpr std::string_view kShape =
    "OPERATION:FROM-TO[:A-Branks]:ALGORITHM, as in all_reduce:0-4k:inline, with semicolons between "
    "rows";
constexpr std::string_view kSizes = "FROM-TO in bytes, as in 0-4k, 64k-1m or 1m-inf";

Error wrong(const std::string& problem) { return Error(ErrorKind::kUsage, problem); }

std::string operation_names() {
  std::vector<std::string_view> names;
  for (const Operation operation : kAllCollectives) names.push_back(name_of(operation));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string_view before(std::string_view text, char end) { return text.substr(0, text.find(end)); }

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
  constexpr int kMostRanks = 1'000'000;
  if (text == "inf") return kAnyRanks;
  const auto ranks = try_parse_number<int>(text);
  return ranks && *ranks <= kMostRanks ? ranks : std::nullopt;
}

/// "4k-inf", with ends that `parse` reads.
template <class End>
std::optional<std::pair<End, End>> try_parse_range(std::string_view text,
                                                   std::optional<End> (*parse)(std::string_view)) {
  const std::vector<std::string_view> ends = split(text, '-');
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
    std::vector<std::string_view> fields = split(text_, ':');
    if (fields.size() != 3 && fields.size() != 4) {
      throw wrong(fmt::format("has {} {} between colons; a row is {}",
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
      throw wrong(fmt::format("there is no operation {}; the operations are {}",
                              quoted_beginning(name),
                              operation_names()));
    }
    const std::string_view where = field.substr(name.size());
    const auto* const place = std::ranges::find(kWhere, where);
    if (place == kWhere.end()) {
      throw wrong(fmt::format("{} is not @host, @hosts or @levels", quoted_beginning(where)));
    }
    row_.operation = *operation;
    row_.where = static_cast<Where>(place - kWhere.begin());
  }

  void parse_sizes(std::string_view field) {
    const auto range = try_parse_range(field, try_parse_end);
    if (!range) {
      throw wrong(
          fmt::format("{} is not a range of sizes; write {}", quoted_beginning(field), kSizes));
    }
    const auto [first, last] = *range;
    row_.over = first == 0_B ? Bytes(-1) : first;
    row_.up_to = last;
    if (row_.over >= row_.up_to) {
      throw wrong(fmt::format("{} contains no size; write {}", field, kSizes));
    }
  }

  void parse_ranks(std::string_view field) {
    const bool has_unit = field.ends_with(kRanks);
    const auto range =
        has_unit ? try_parse_range(field.substr(0, field.size() - kRanks.size()), try_parse_ranks)
                 : std::nullopt;
    if (!range) {
      throw wrong(fmt::format("{} is not a range of ranks, as in 2-4ranks or 5-infranks",
                              quoted_beginning(field)));
    }
    std::tie(row_.least_ranks, row_.most_ranks) = *range;
    if (row_.least_ranks > row_.most_ranks) {
      throw wrong(
          fmt::format("{} contains no number of ranks: write the smaller number first", field));
    }
  }

  static std::string_view name_of_operation(Operation operation) { return name_of(operation); }

  std::string_view text_;
  Row row_;
};

/// A row for kLevels may stand before a row for kSeveralHosts, as the exception to it. After it, it
/// would never count.
bool overlap(const Row& first, const Row& later) {
  const bool there = first.where == later.where || first.where == Where::kAnywhere ||
                     later.where == Where::kAnywhere ||
                     (first.where == Where::kSeveralHosts && later.where == Where::kLevels);
  return first.operation == later.operation && there &&
         std::max(first.over, later.over) < std::min(first.up_to, later.up_to) &&
         std::max(first.least_ranks, later.least_ranks) <=
             std::min(first.most_ranks, later.most_ranks);
}

std::string end_text(Bytes size) {
  return size == kAnySize ? "inf" : size_text(size, SizeStyle::kShort);
}

std::string ranks_text(const Row& row) {
  if (row.least_ranks <= 2 && row.most_ranks == kAnyRanks) return "";
  if (row.most_ranks == kAnyRanks) return fmt::format("{}-inf{}:", row.least_ranks, kRanks);
  return fmt::format("{}-{}{}:", row.least_ranks, row.most_ranks, kRanks);
}

/// Parses rows one by one. Remembers where each row is, for error texts.
class TableParser {
 public:
  explicit TableParser(std::string_view text) : text_(text) {}

  Table parse() {
    for (const std::string_view line : split(text_, '\n')) {
      ++line_;
      for (const std::string_view part : split(before(line, '#'), ';')) {
        if (const std::string compact = without_spaces(part); !compact.empty()) add(compact);
      }
    }
    return std::move(table_);
  }

 private:
  void add(const std::string& compact) {
    try {
      const Row row = RowParser(compact).parse();
      check_overlap(row);
      table_.rows.push_back(row);
      places_.push_back(place());
    } catch (const Error& error) {
      throw wrong(fmt::format("{}, {}: {}", place(), quoted_beginning(compact), error.message()));
    }
  }

  /// Where a reader finds the row: "line 5" in a text of several lines, otherwise "row 3".
  std::string place() const {
    const bool has_lines = text_.find('\n') != std::string_view::npos;
    return has_lines ? fmt::format("line {}", line_) : fmt::format("row {}", places_.size() + 1);
  }

  void check_overlap(const Row& row) const {
    const auto other = std::ranges::find_if(
        table_.rows, [&](const Row& earlier) { return overlap(earlier, row); });
    if (other == table_.rows.end()) return;
    throw wrong(
        fmt::format("it overlaps with {}, \"{}\"; only one row may cover a case, except "
                    "that rows @levels may precede rows @hosts",
                    places_[static_cast<std::size_t>(other - table_.rows.begin())],
                    to_text(*other)));
  }

  std::string_view text_;
  int line_ = 0;
  std::vector<std::string> places_;  // of the rows
  Table table_;
};

}  // namespace

Table parse_table(std::string_view text) { return TableParser(text).parse(); }

std::string to_text(const Row& row) {
  return fmt::format("{}{}:{}-{}:{}{}",
                     name_of(row.operation),
                     kWhere[static_cast<std::size_t>(row.where)],
                     end_text(std::max(row.over, Bytes(0))),
                     end_text(row.up_to),
                     ranks_text(row),
                     row.algorithm->name);
}

std::string to_text(const Table& table, std::string_view between) {
  std::vector<std::string> rows;
  for (const Row& row : table.rows) rows.push_back(to_text(row));
  return fmt::format("{}", fmt::join(rows, between));
}

}  // namespace peal::plan
