// From the bytes of a flight recorder's file to a Flight. The file may come from anywhere, and from
// a rank that was killed while it wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "peal/observe/flight.h"

namespace peal::observe {

/// Whether these are the beginning of a flight, and no other file.
bool is_flight(std::string_view bytes);

/// How many ranks the groups of some records may name in all. A group of millions takes 12 bytes of
/// a record, so the budget grows with the bytes that are read, and bounds the memory for all of
/// them.
class RankBudget final {
 public:
  /// More bytes are to be parsed.
  void add(std::string_view bytes) { left_ += bytes.size(); }
  bool try_take() { return left_ > 0 && left_-- > 0; }

 private:
  std::size_t left_ = std::size_t{1} << 20;
};

/// What the bytes say. An entry that makes no sense is skipped, and counted in Flight::torn.
/// Errors: mismatch, if they are no flight, one of another version, not whole, or if the groups
/// name more ranks than the budget has left. Cost: linear in the bytes.
Flight parse_flight(std::string_view bytes);
/// The same as one of several records, whose bytes have been added to the budget.
Flight parse_flight(std::string_view bytes, RankBudget& budget);

/// Whether the process, one of this machine, goes on recording into the file at `path`. Another may
/// have its number by now, but not the file. Source: proc(5), maps.
bool is_recorded_by(std::uint64_t pid, const std::string& path);

}  // namespace peal::observe
