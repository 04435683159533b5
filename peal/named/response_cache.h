// The operations that all ranks remember, each with a number that stands for it in a round. Every
// rank makes the same changes in the same order, so the numbers are the same on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "peal/named/request.h"

namespace peal::named {

/// Threads: one.
class ResponseCache {
 public:
  explicit ResponseCache(std::size_t capacity) : capacity_(capacity) {}

  /// The number of the entry with this name.
  std::optional<std::size_t> try_find(const std::string& name) const;
  const Request& at(std::size_t number) const { return *entries_[number].request; }
  bool contains(std::size_t number) const {
    return number < entries_.size() && entries_[number].request.has_value();
  }
  /// The numbers of the members of the group, ascending.
  /// Cost: a look at each entry, if there is a member.
  std::vector<std::size_t> members_of(const std::string& group) const;
  /// One more than the largest number in use.
  std::size_t end() const { return entries_.size(); }

  /// Makes the entry the last to be evicted.
  void touch(std::size_t number);
  /// Adds a request whose name is not in the cache, with the lowest free number. If the cache is
  /// full, first evicts the entry that was used the longest time ago, and returns its number. Does
  /// nothing if the capacity is 0.
  std::optional<std::size_t> insert(const Request& request);
  void erase(std::size_t number);

 private:
  struct Entry {
    std::optional<Request> request;
    std::list<std::size_t>::iterator use;
  };

  std::size_t capacity_;
  std::vector<Entry> entries_;     // by number
  std::list<std::size_t> uses_;    // the latest first
  std::vector<std::size_t> free_;  // numbers below end() that are not in use, the lowest last
  std::unordered_map<std::string, std::size_t> numbers_;
  std::unordered_map<std::string, std::size_t> members_;  // how many, by the name of the group
};

}  // namespace peal::named
