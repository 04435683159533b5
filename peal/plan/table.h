// Which algorithm is best for what, as a value that people read and write: the built-in choices
// (choose.h), what a user sets before them (PEAL_TUNE), what `peal bench --tune` finds.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "peal/plan/plan.h"

namespace peal::plan {

/// Where a row counts: whether all ranks share one host's memory.
enum class Where : std::uint8_t {
  kAnywhere,
  kOneHost,
  kSeveralHosts,
  kLevels,  // several hosts with as many ranks each, several; where no row says so, kSeveralHosts
};

inline constexpr Bytes kAnySize(std::numeric_limits<std::int64_t>::max());
inline constexpr int kAnyRanks = std::numeric_limits<int>::max();

/// "For this operation, there, of these sizes, among so many ranks, that algorithm." Sizes count
/// the whole buffer, all blocks together.
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

/// The first row counts that fits and whose algorithm applies.
struct Table {
  std::vector<Row> rows;

  friend bool operator==(const Table&, const Table&) = default;
};

/// Rows as in
///   all_reduce:0-4k:inline; all_reduce:4k-inf:direct
///   all_reduce@hosts:0-256k:2-4ranks:pairwise   # a few exchange everything
/// An operation, `@host` or `@hosts` where it counts on one host or between several only, `@levels`
/// where between several of several ranks each, the sizes, the numbers of ranks where not all, the
/// algorithm. Sizes are more than the first, except that 0 is included, up to the second: as
/// base/size_text.h has them, or inf. Between rows are semicolons or lines; spaces mean nothing,
/// nor does what follows # in its line.
/// Errors: usage, which names the row - by its line where there are lines -, what is wrong with it
/// and what may stand there: unknown names, ranges that hold nothing, rows that overlap.
Table parse_table(std::string_view text);

/// The inverse: "all_reduce@hosts:0-256k:2-4ranks:pairwise".
std::string to_text(const Row& row);
/// All rows, with `between` between two: ";" or "\n".
std::string to_text(const Table& table, std::string_view between);

}  // namespace peal::plan
