// Results as a table for people. Pure. Printed by `peal bench` case by case.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/result.h"

namespace peal::bench {

/// The names of the columns; `peers`: those that get a column of ratios.
std::string table_header(const std::vector<std::string>& peers);
/// A row, with the same columns.
std::string table_row(const Result& result, const std::vector<std::string>& peers);

/// Microseconds with the unit that fits: "0.17 us", "23.4 us", "1.06 ms".
std::string describe_time(double microseconds);

}  // namespace peal::bench
