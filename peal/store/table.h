// The keys and values of a store as a value: what every implementation keeps, and the rules that
// they share. Used by the memory store, the TCP server and the file store.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/units.h"

namespace peal::store {

inline constexpr Bytes kMaxKey = 1_KiB;
inline constexpr Bytes kMaxValue = 16_MiB;

/// Error(usage) beyond the limits, which names the key.
void check_key(std::string_view key);
void check_value(std::string_view key, std::string_view value);

/// The operations of Store without waiting; see there. Errors: usage.
class Table {
 public:
  void set(std::string_view key, std::string_view value);
  /// nullptr where there is none; valid until the key changes.
  const std::string* find(std::string_view key) const;
  std::int64_t add(std::string_view key, std::int64_t amount);
  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired);
  bool erase(std::string_view key);

  std::vector<std::string> missing(std::span<const std::string> keys) const;

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// When a caller's wait is given up although the store did not say that it was in vain: a moment
/// after the caller's deadline, since a store that works needs that moment to name what is missing.
Deadline with_grace(Deadline deadline);

/// What a wait that came to its deadline throws: names the first of the keys.
Error missing_keys(std::span<const std::string> keys);

}  // namespace peal::store
