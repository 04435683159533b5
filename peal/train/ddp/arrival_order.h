// Learns in which order backward passes compute gradients, so that buckets can be sent as early as
// possible.
#pragma once

#include <cstddef>
#include <vector>

namespace peal::train {

/// Pure: a function of the arrivals. An order counts as learned when two passes in succession have
/// had it, so a model that changes its order in each pass keeps its buckets.
class ArrivalOrder {
 public:
  explicit ArrivalOrder(std::size_t gradients = 0) : gradients_(gradients) {}

  void begin_pass() { now_.clear(); }
  /// Each gradient arrives once in a pass.
  void arrived(std::size_t gradient) { now_.push_back(gradient); }
  /// Passes in which some gradient has not arrived do not count.
  void end_pass();

  /// Empty until an order is learned.
  const std::vector<std::size_t>& learned() const { return learned_; }

 private:
  std::size_t gradients_;
  std::vector<std::size_t> now_, before_, learned_;
};

}  // namespace peal::train
