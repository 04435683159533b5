// Kills or freezes this process when it begins a certain operation, by the user's fault plan.
// native.cpp makes one for the world's group if there is a plan.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "peal/base/report.h"
#include "peal/config/fault_plan.h"

namespace peal::native {

class FaultInjector {
 public:
  /// Null if the plan has no fault for the rank.
  static std::unique_ptr<FaultInjector> try_make(const FaultPlan& plan, Rank rank);

  explicit FaultInjector(std::vector<ProcessFault> faults) : faults_(std::move(faults)) {}

  /// The rank begins its next operation. Returns after a freeze of limited length.
  /// Threads: any number at once.
  /// Errors: resource (no timer is available to end a freeze).
  void begin_operation();

  /// The rank begins no more operations. The first call reports the faults that were never reached.
  void end(const Report& report);

 private:
  std::vector<ProcessFault> faults_;  // of this rank
  std::atomic<std::int64_t> operations_ = 0;
  std::atomic<bool> has_ended_ = false;
};

}  // namespace peal::native
