#include "peal/named/response_cache.h"

#include <algorithm>
#include <functional>

namespace peal::named {

std::optional<std::size_t> ResponseCache::try_find(const std::string& name) const {
  const auto found = numbers_.find(name);
  if (found == numbers_.end()) return std::nullopt;
  return found->second;
}

std::vector<std::size_t> ResponseCache::members_of(const std::string& group) const {
  std::vector<std::size_t> members;
  if (!members_.contains(group)) return members;
  for (std::size_t number = 0; number < entries_.size(); ++number) {
    if (contains(number) && at(number).group == group) members.push_back(number);
  }
  return members;
}

void ResponseCache::touch(std::size_t number) {
  uses_.splice(uses_.begin(), uses_, entries_[number].use);
}

std::optional<std::size_t> ResponseCache::insert(const Request& request) {
  if (capacity_ == 0) return std::nullopt;
  std::optional<std::size_t> evicted;
  if (uses_.size() == capacity_) {
    evicted = uses_.back();
    erase(*evicted);
  }
  std::size_t number = entries_.size();
  if (free_.empty()) {
    entries_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  numbers_.emplace(request.name, number);
  if (!request.group.empty()) ++members_[request.group];
  uses_.push_front(number);
  entries_[number] = {request, uses_.begin()};
  return evicted;
}

void ResponseCache::erase(std::size_t number) {
  Entry& entry = entries_[number];
  numbers_.erase(entry.request->name);
  if (const auto group = members_.find(entry.request->group); group != members_.end()) {
    if (--group->second == 0) members_.erase(group);
  }
  uses_.erase(entry.use);
  entry.request.reset();
  free_.insert(std::ranges::upper_bound(free_, number, std::greater<>()), number);
}

}  // namespace peal::named
