#include "peal/bench/table.h"

#include <fmt/format.h>

#include "peal/base/size_text.h"

namespace peal::bench {
namespace {

constexpr const char* kColumns =
    "{:<14} {:<5} {:>3} {:>9} {:<{}} {:<10} {:<18} {:>9} {:>19} {:>9} {:>7} {:>7} {:>6}";

/// Three significant digits.
std::string three_digits(double value) {
  if (value < 0.1) return fmt::format("{:.2g}", value);
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string range(const Summary& time) {
  return describe_time(time.least) + " - " + describe_time(time.most);
}

}  // namespace

std::string describe_time(double microseconds) {
  if (microseconds < 1000) return three_digits(microseconds) + " us";
  if (microseconds < 1e6) return three_digits(microseconds / 1000) + " ms";
  return three_digits(microseconds / 1e6) + " s";
}

std::string table_header(const Columns& columns) {
  std::string line = fmt::format(fmt::runtime(kColumns),
                                 "op",
                                 "dtype",
                                 "np",
                                 "bytes",
                                 "backend",
                                 columns.backend_width,
                                 "memory",
                                 "algorithm",
                                 "median",
                                 "rounds",
                                 "p99",
                                 "algbw",
                                 "busbw",
                                 "floor");
  for (const std::string& peer : columns.peers) line += fmt::format(" {:>10}", "x " + peer);
  return line + "\n";
}

std::string table_row(const Result& result, const Columns& columns) {
  const Case& c = result.the_case;
  std::string line = fmt::format(fmt::runtime(kColumns),
                                 name_of(c.op),
                                 name_of(c.dtype),
                                 c.ranks,
                                 size_text(bytes_of(c), SizeStyle::kLong),
                                 result.backend,
                                 columns.backend_width,
                                 result.variant == "default" ? "" : result.variant,
                                 result.algorithm,
                                 describe_time(result.time.median),
                                 range(result.time),
                                 describe_time(result.time.p99),
                                 three_digits(algorithm_bandwidth(result)),
                                 three_digits(bus_bandwidth(result)),
                                 result.floor_fraction ? three_digits(*result.floor_fraction) : "");
  for (const std::string& peer : columns.peers) {
    const auto ratio = result.times_faster.find(peer);
    line += fmt::format(" {:>10}",
                        ratio == result.times_faster.end() ? "" : three_digits(ratio->second));
  }
  return line + "\n";
}

}  // namespace peal::bench
