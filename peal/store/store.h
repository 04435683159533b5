// A small table of keys and values that all ranks of a job can reach. The ranks use it to find each
// other. Implementations:
// - memory: for the threads of one process;
// - file: a file with fcntl locks;
// - tcp: a client of a server that one process runs;
// - prefix: a view of another store under a prefix;
// - sealed: a view that accepts only values with the seal of the job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"

namespace peal::store {

/// The key under which a store's server describes rejected connections, in a sentence for ranks
/// that time out. The key does not exist while no connection was rejected.
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

  /// The values of those keys that exist now, by key, in no common moment. A server answers in one
  /// round trip, so that many ranks can look for each other.
  virtual std::vector<std::optional<std::string>> try_get_all(
      const std::vector<std::string>& keys) {
    std::vector<std::optional<std::string>> values;
    for (const std::string& key : keys) values.push_back(try_get(key));
    return values;
  }

  /// value += amount, as a decimal number, 0 if the key is new; returns the new value. Atomic.
  virtual std::int64_t add(std::string_view key, std::int64_t amount) = 0;

  /// If the value is `expected` (or the key is new and `expected` is empty), sets it to `desired`.
  /// Returns the value after the call. Atomic.
  virtual std::string compare_set(std::string_view key,
                                  std::string_view expected,
                                  std::string_view desired) = 0;

  /// Waits until all keys exist. Throws Error(timeout) that names the missing keys.
  virtual void wait(const std::vector<std::string>& keys, Deadline deadline) = 0;

  /// Returns whether the key existed.
  virtual bool erase(std::string_view key) = 0;

  /// Leaves a last will: when this store object is destroyed, or this process ends in any way, the
  /// key is set to `value`, unless the key exists by then. So ranks that wait for the key are
  /// notified. A store that ends with this process does nothing.
  virtual void set_will(std::string_view key, std::string_view value) = 0;

  /// Whether the store answers before the deadline. For callers that can do without the store:
  /// calls without a deadline wait for the store's full timeout. Throws only errors of kind bug.
  virtual bool answers(Deadline deadline) = 0;
};

}  // namespace peal::store
