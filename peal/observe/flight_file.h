// Parses the bytes of a flight recorder's file into a Flight. The file may come from anywhere, and
// from a rank that was killed while it wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "peal/observe/flight.h"

namespace peal::observe {

/// Whether the bytes begin like a flight.
bool is_flight(std::string_view bytes);

/// Limits how many ranks the groups of some records name in total, and so the memory. A record of a
/// few bytes can name a group of millions of ranks. So the limit grows with the bytes that are
/// read.
class RankBudget final {
 public:
  /// Adds the budget of `bytes`, which are about to be parsed.
  void add(std::string_view bytes) { left_ += bytes.size(); }
  bool try_take() { return left_ > 0 && left_-- > 0; }

 private:
  std::size_t left_ = std::size_t{1} << 20;
};

/// Parses a flight. Skips an entry that makes no sense, and counts it in Flight::torn.
/// Errors: mismatch, if the bytes are not a flight, have another version or are not whole, or if
///   the groups name more ranks than the budget has left.
/// Cost: linear in the bytes.
Flight parse_flight(std::string_view bytes);
/// The same for one of several records, whose bytes have been added to the budget.
Flight parse_flight(std::string_view bytes, RankBudget& budget);

/// Whether process `pid` of this machine still maps the file at `path`, and so records into it.
/// Another process may have the number by now, but it does not map the file.
/// Source: proc(5), maps.
bool is_recorded_by(std::uint64_t pid, const std::string& path);

}  // namespace peal::observe
