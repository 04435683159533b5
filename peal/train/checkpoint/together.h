// Steps that all ranks take together: if one rank fails, all ranks throw its error. Used by the
// files of this folder that save, by checkpoint_reader.cpp and by the Trainer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/group/process_group.h"

namespace peal::train {

/// The ranks of a group, or this process alone (without a group). Borrows the group.
class Ranks {
 public:
  Ranks() = default;
  Ranks(ProcessGroup& group, Timeout timeout) : group_(&group), timeout_(timeout) {}

  Rank rank() const { return group_ ? group_->rank() : 0; }
  int size() const { return group_ ? group_->size() : 1; }

  /// Calls `work`, and returns when the work of every rank has succeeded.
  /// Order: collective.
  /// Errors: if work throws on a rank, every rank throws this error. Its text begins with the
  /// rank's
  ///   number in the world. If several ranks fail, the error of the smallest rank counts. Also
  ///   those of the operations.
  /// Cost: an all_reduce of 4 bytes.
  void together(const std::function<void()>& work) const;

  /// The text of rank 0. Order: collective. Errors: those of broadcast.
  std::string broadcast(const std::string& text) const;

  /// The text of each rank, by rank. Order: collective. Errors: those of all_gather.
  std::vector<std::string> gather(const std::string& text) const;

 private:
  ProcessGroup* group_ = nullptr;
  Timeout timeout_ = kGroupTimeout;
};

}  // namespace peal::train
