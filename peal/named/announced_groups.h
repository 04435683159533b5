// The groups of operations that ranks have announced. Finds groups with different sizes on
// different ranks. A part of the state of Agreement (agreement.h), the same on all ranks.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "peal/base/units.h"
#include "peal/named/request.h"

namespace peal::named {

/// Threads: one.
class AnnouncedGroups final {
 public:
  /// `global_ranks`: the ranks of the group in the world, for texts.
  explicit AnnouncedGroups(std::vector<Rank> global_ranks)
      : global_ranks_(std::move(global_ranks)) {}

  /// The rank has announced a member of a group.
  void note(Rank rank, const Request& member);
  /// The group has run or failed.
  void erase(const std::string& name) { by_name_.erase(name); }
  /// Whether ranks have announced different sizes.
  bool is_uneven(const std::string& name) const;

  struct Uneven {
    std::vector<std::string> members;  // of all ranks, in the order of their announcements
    std::string problem;
  };
  /// The groups of different sizes that all ranks have announced; joined ranks need not. Removes
  /// these groups.
  /// Cost: a look at each group.
  std::vector<Uneven> take_uneven(const std::vector<bool>& joined);

 private:
  struct OfRank {
    int size = 0;       // 0: not announced
    int announced = 0;  // members
  };
  struct Group {
    std::vector<OfRank> by_rank;
    std::vector<std::string> members;
  };

  static bool is_uneven(const Group& group);
  std::string problem_of(const std::string& name, const Group& group) const;

  std::vector<Rank> global_ranks_;
  std::map<std::string, Group> by_name_;  // in an order that is the same on all ranks
};

}  // namespace peal::named
