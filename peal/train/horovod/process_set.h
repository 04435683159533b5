// A set of ranks with operations of its own. For training programs, by peal/horovod.h.
#pragma once

#include <vector>

#include "peal/base/units.h"

namespace peal::hvd {

/// A value: the number of a set that init or add_process_set has registered. Operations of two sets
/// do not wait for each other, and may have the same names.
/// Errors of the getters: usage (before init; a set that is not registered).
class ProcessSet final {
 public:
  /// All ranks.
  ProcessSet() = default;
  explicit ProcessSet(int id) : id_(id) {}

  int id() const { return id_; }
  /// The ranks of the set in the world, ascending.
  std::vector<Rank> ranks() const;
  int size() const;
  /// This rank's place among the ranks of the set; -1 if this rank is not in the set.
  Rank rank() const;
  bool included() const;

  friend bool operator==(const ProcessSet&, const ProcessSet&) = default;

 private:
  int id_ = 0;
};

inline const ProcessSet global_process_set;

/// Registers a set of ranks after init.
/// Order: called by all ranks, with the same ranks in any order.
/// Errors: usage (dynamic process sets are off, no ranks, an unknown rank, a rank twice, a set of
///   these ranks exists), mismatch (ranks pass different lists), those of ProcessGroup::new_group.
ProcessSet add_process_set(std::vector<Rank> ranks);

/// Removes a set. Returns false for all ranks' set and for a set that is not registered.
/// Order: called by all ranks.
/// Errors: usage (dynamic process sets are off), mismatch (ranks remove different sets).
bool remove_process_set(const ProcessSet& set);

/// All registered sets, by number.
std::vector<ProcessSet> process_sets();

}  // namespace peal::hvd
