// Results as a table for people. Pure. `peal bench` prints it case by case.
#pragma once

#include <string>
#include <vector>

#include "peal/bench/result.h"

namespace peal::bench {

struct Columns {
  std::vector<std::string> peers = {};  // peers with a column of ratios
  std::size_t backend_width = 8;        // the width of the longest name
};

std::string table_header(const Columns& columns);
std::string table_row(const Result& result, const Columns& columns);

/// A time with a suitable unit: "0.17 us", "23.4 us", "1.06 ms".
std::string describe_time(double microseconds);

}  // namespace peal::bench
