// What is to befall this process by the user's plan, as a rehearsal: it is killed or frozen when it
// begins a certain operation. native.cpp has one for the world's group, where there is a plan.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "peal/base/fault_plan.h"
#include "peal/base/report.h"

namespace peal::native {

class Fate {
 public:
  /// Nothing where the plan spares the rank.
  static std::unique_ptr<Fate> try_make(const FaultPlan& plan, Rank rank);

  explicit Fate(std::vector<ProcessFault> faults) : faults_(std::move(faults)) {}

  /// The rank begins its next operation. Returns when a freeze that ends has ended.
  /// Threads: any number at once. Errors: resource (no timer is left that could end a freeze).
  void begin_operation();

  /// The rank begins no more: says, the first time, which of the faults it never came to.
  void end(const Report& report);

 private:
  std::vector<ProcessFault> faults_;  // of this rank
  std::atomic<std::int64_t> operations_ = 0;
  std::atomic<bool> has_ended_ = false;
};

}  // namespace peal::native
