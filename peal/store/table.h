// The keys and values of a store in memory, and the rules that all implementations share. Used by
// the memory store, the TCP server and the file store.
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

/// Throws Error(usage) if the key or the value is too long. The error names the key.
void check_key(std::string_view key);
void check_value(std::string_view key, std::string_view value);

/// The operations of Store (store.h), without waiting. Errors: usage.
class Table {
 public:
  void set(std::string_view key, std::string_view value);
  /// nullptr if the key does not exist. The pointer is valid until the key changes.
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

/// When to stop waiting for a store that does not reply: a moment after the caller's deadline. A
/// working store needs this moment to name the missing keys.
Deadline with_grace(Deadline deadline);

/// The error of a wait that timed out. It names the first of the keys.
Error missing_keys(std::span<const std::string> keys);

}  // namespace peal::store
