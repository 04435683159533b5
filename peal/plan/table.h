// The best algorithm for each operation and size, as a table that people read and write: the
// built-in choices (choose.h), a user's rows before them (PEAL_TUNE), and the result of
// `peal bench --tune`.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "peal/plan/plan.h"

namespace peal::plan {

/// On which groups a row counts: on one host whose memory all ranks share, or on several hosts.
enum class Where : std::uint8_t {
  kAnywhere,
  kOneHost,
  kSeveralHosts,  // with any number of ranks on each, so also on groups of kLevels
  kLevels,        // several hosts, each with the same number of ranks, at least 2
};

inline constexpr Bytes kAnySize(std::numeric_limits<std::int64_t>::max());
inline constexpr int kAnyRanks = std::numeric_limits<int>::max();

/// "For this operation, on such hosts, for these sizes and numbers of ranks, use this algorithm."
/// Sizes count the whole buffer, all blocks together.
struct Row {
  Operation operation = Operation::kAllReduce;
  Where where = Where::kAnywhere;
  Bytes over = Bytes(-1);  // more than this
  Bytes up_to = kAnySize;
  int least_ranks = 2;
  int most_ranks = kAnyRanks;
  const Algorithm* algorithm = nullptr;  // never null in a table

  friend bool operator==(const Row&, const Row&) = default;
};

/// The first row that fits the problem, and whose algorithm applies, counts.
struct Table {
  std::vector<Row> rows;

  friend bool operator==(const Table&, const Table&) = default;
};

/// Parses rows such as
///   all_reduce:0-4k:inline; all_reduce:4k-inf:direct
///   all_reduce@hosts:0-256k:2-4ranks:pairwise   # a few hosts exchange all data
/// The fields of a row, separated by colons:
///   operation  all_reduce, ...; @host: on one host only; @hosts: between hosts only; @levels:
///              between hosts of several ranks each
///   sizes      more than the first (0 includes 0), up to the second; as in base/size_text.h, or
///              inf
///   ranks      the numbers of ranks, if the row does not count for all
///   algorithm  its name
/// Semicolons or line ends separate rows. Spaces are ignored, and so is the text after # in a line.
/// Errors: usage. The text names the row (its line if there are several lines), the mistake, and
/// what is allowed there. Mistakes are unknown names, empty ranges and rows that overlap.
Table parse_table(std::string_view text);

/// The text of one row: "all_reduce@hosts:0-256k:2-4ranks:pairwise".
std::string to_text(const Row& row);
/// All rows, with `between` between two rows: ";" or "\n".
std::string to_text(const Table& table, std::string_view between);

}  // namespace peal::plan
