// Results as a table for people. Pure. Printed by `peal bench` case by case.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/result.h"

namespace peal::bench {

struct Columns {
  std::vector<std::string> peers = {};  // those that get a column of ratios
  std::size_t backend_width = 8;        // as wide as the longest name
};

/// The names of the columns.
std::string table_header(const Columns& columns);
/// A row, with the same columns.
std::string table_row(const Result& result, const Columns& columns);

/// Microseconds with the unit that fits: "0.17 us", "23.4 us", "1.06 ms".
std::string describe_time(double microseconds);

}  // namespace peal::bench
