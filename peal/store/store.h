// A small table of keys and values that all ranks of a job can reach: how they find each other.
// Implementations: memory (threads of one process), file (a file with fcntl locks), tcp (client of
// a server that one process runs), prefix (a view of another under a prefix).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"

namespace peal::store {

/// Where a store that has a server says whom it has refused, in a sentence for those who wait in
/// vain; nothing is there while that is nobody.
inline constexpr std::string_view kRefusedKey = "refused";

/// Keys and values are bytes; keys up to 1 KiB, values up to 16 MiB (else Error(usage)).
/// Threads: any number at once.
/// Errors of every call: timeout (names the key and the phase), peer_lost (the server went away),
/// resource.
class Store {
 public:
  virtual ~Store() = default;

  virtual void set(std::string_view key, std::string_view value) = 0;

  /// Waits until the key exists. Throws Error(timeout) that names it if it does not come in time.
  virtual std::string get(std::string_view key, Deadline deadline) = 0;

  /// The value if the key exists now.
  virtual std::optional<std::string> try_get(std::string_view key) = 0;

  /// value += amount, as a decimal number, 0 if the key is new; returns the new value. Atomic.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;

  /// If the value is `expected` (or the key is new and `expected` is empty) it becomes `desired`.
  /// Returns the value after the call. Atomic.
  virtual std::string compare_set(std::string_view key,
                                  std::string_view expected,
                                  std::string_view desired) = 0;

  /// Waits until all keys exist. Throws Error(timeout) that names those that are missing.
  virtual void wait(const std::vector<std::string>& keys, Deadline deadline) = 0;

  /// Returns whether the key existed.
  virtual bool erase(std::string_view key) = 0;

  /// Leaves a will: when this store is let go of here, or this process ends, however it ends, the
  /// key becomes `value` unless it exists by then. So others learn of it who wait for the key. A
  /// store that ends with this process has nobody to tell.
  virtual void set_will(std::string_view key, std::string_view value) = 0;

  /// Whether the store can be asked now: for those who would rather do without than wait, since
  /// calls without a deadline wait for as long as the store was made to. Throws nothing but bugs.
  virtual bool answers(Deadline deadline) = 0;
};

}  // namespace peal::store
