#include "peal/store/table.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/parse_number.h"

namespace peal::store {
namespace {

/// A key in an error text: quoted, and shortened to a line.
std::string shown(std::string_view key) {
  constexpr std::size_t kLongest = 80;
  if (key.size() <= kLongest) return fmt::format("\"{}\"", key);
  return fmt::format("\"{}...\"", key.substr(0, kLongest));
}

std::int64_t number_in(std::string_view key, std::string_view text) {
  if (const auto number = try_parse_number<std::int64_t>(text)) return *number;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("cannot add to the store's key {}: its value is not a number", shown(key)));
}

}  // namespace

void check_key(std::string_view key) {
  if (key.size() > static_cast<std::size_t>(kMaxKey.value)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the store's key {} has {} bytes; a key has at most {}",
                            shown(key),
                            key.size(),
                            kMaxKey.value));
  }
}

void check_value(std::string_view key, std::string_view value) {
  if (value.size() > static_cast<std::size_t>(kMaxValue.value)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the value for the store's key {} has {} bytes; a value has at most {}",
                            shown(key),
                            value.size(),
                            kMaxValue.value));
  }
}

void Table::set(std::string_view key, std::string_view value) {
  check_key(key);
  check_value(key, value);
  values_.insert_or_assign(std::string(key), std::string(value));
}

const std::string* Table::find(std::string_view key) const {
  check_key(key);
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::int64_t Table::add(std::string_view key, std::int64_t amount) {
  const std::string* old = find(key);
  std::int64_t sum = 0;
  if (__builtin_add_overflow(old == nullptr ? 0 : number_in(key, *old), amount, &sum)) {
    throw Error(ErrorKind::kUsage,
                fmt::format("adding {} to the store's key {} overflows", amount, shown(key)));
  }
  set(key, std::to_string(sum));
  return sum;
}

std::string Table::compare_set(std::string_view key,
                               std::string_view expected,
                               std::string_view desired) {
  const std::string* old = find(key);
  const std::string_view current = old == nullptr ? "" : std::string_view(*old);
  if (current != expected) return std::string(current);
  set(key, desired);
  return std::string(desired);
}

bool Table::erase(std::string_view key) {
  check_key(key);
  const auto found = values_.find(key);
  if (found == values_.end()) return false;
  values_.erase(found);
  return true;
}

std::vector<std::string> Table::missing(std::span<const std::string> keys) const {
  std::vector<std::string> result;
  for (const std::string& key : keys) {
    if (find(key) == nullptr) result.push_back(key);
  }
  return result;
}

Deadline with_grace(Deadline deadline) {
  constexpr Timeout kGrace = std::chrono::milliseconds(500);
  if (deadline.at() > TimePoint::max() - kGrace) return deadline;
  return Deadline(deadline.at() + kGrace);
}

Error missing_keys(std::span<const std::string> keys) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> names;
  for (const std::string& key : keys.first(std::min(keys.size(), kShown))) {
    names.push_back(shown(key));
  }
  const std::string more =
      keys.size() > kShown ? fmt::format(" and {} more", keys.size() - kShown) : "";
  return Error(
      ErrorKind::kTimeout,
      fmt::format("no rank has set {}{} in the store in time", fmt::join(names, ", "), more));
}

}  // namespace peal::store
