#include "peal/named/announced_groups.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace peal::named {
namespace {

bool is_announced_by_all(const auto& by_rank, const std::vector<bool>& joined) {
  for (std::size_t rank = 0; rank < joined.size(); ++rank) {
    const bool is_whole = by_rank[rank].size != 0 && by_rank[rank].announced >= by_rank[rank].size;
    if (!is_whole && !(joined[rank] && by_rank[rank].size == 0)) return false;
  }
  return true;
}

}  // namespace

void AnnouncedGroups::note(Rank rank, const Request& member) {
  Group& group = by_name_[member.group];
  group.by_rank.resize(global_ranks_.size());
  OfRank& mine = group.by_rank[static_cast<std::size_t>(rank)];
  mine.announced = mine.size == member.group_size ? mine.announced + 1 : 1;
  mine.size = member.group_size;
  if (std::ranges::find(group.members, member.name) == group.members.end()) {
    group.members.push_back(member.name);
  }
}

bool AnnouncedGroups::is_uneven(const Group& group) {
  int size = 0;
  for (const OfRank& one : group.by_rank) {
    if (one.size != 0 && size != 0 && one.size != size) return true;
    if (one.size != 0) size = one.size;
  }
  return false;
}

bool AnnouncedGroups::is_uneven(const std::string& name) const {
  const auto group = by_name_.find(name);
  return group != by_name_.end() && is_uneven(group->second);
}

std::vector<AnnouncedGroups::Uneven> AnnouncedGroups::take_uneven(const std::vector<bool>& joined) {
  std::vector<Uneven> taken;
  std::erase_if(by_name_, [&](auto& entry) {
    auto& [name, group] = entry;
    if (!is_uneven(group) || !is_announced_by_all(group.by_rank, joined)) return false;
    std::string problem = problem_of(name, group);
    taken.push_back({.members = std::move(group.members), .problem = std::move(problem)});
    return true;
  });
  return taken;
}

std::string AnnouncedGroups::problem_of(const std::string& name, const Group& group) const {
  std::vector<Side> sides;
  for (std::size_t rank = 0; rank < group.by_rank.size(); ++rank) {
    const int size = group.by_rank[rank].size;
    if (size == 0) continue;
    const std::string value = fmt::format("{} tensor{}", size, size == 1 ? "" : "s");
    auto side = std::ranges::find(sides, value, &Side::value);
    if (side == sides.end()) side = sides.insert(sides.end(), Side{.value = value, .ranks = {}});
    side->ranks.push_back(global_ranks_[rank]);
  }
  return fmt::format("Mismatched sizes of the group {}: {}", name, sides_text(sides));
}

}  // namespace peal::named
