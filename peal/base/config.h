// Everything that the environment can set, read once at the edge. One table drives parsing,
// printing and the docs. (Who a process is - RANK, WORLD_SIZE and their like - is `rendezvous`'s
// matter.)
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/environment.h"
#include "peal/base/units.h"

namespace peal {

/// How the ranks of a group reach each other.
enum class TransportChoice : unsigned char {
  kAuto,  // shared memory inside a host, TCP between hosts
  kShm,   // shared memory only: an error where ranks are on several hosts
  kTcp,   // TCP everywhere
};

struct Config {
  /// Known to all ranks of the job and nobody else; every connection is proved with it.
  std::string secret;
  /// Which network interfaces to publish and connect from; see rendezvous/interfaces.h. Empty: all.
  std::string interfaces;
  TransportChoice transport = TransportChoice::kAuto;
  /// For rendezvous, connection and every operation that is not given its own.
  Timeout timeout = std::chrono::minutes(5);
  /// The algorithm to use for every operation that it applies to; empty: plan::choose.
  std::string algorithm;
  /// Scratch that a rank shares with its host for staging.
  Bytes stage = 4_MiB;

  friend bool operator==(const Config&, const Config&) = default;
};

/// One row of the table.
struct Variable {
  std::string_view name;   // "PEAL_TIMEOUT"
  std::string_view value;  // what it takes: "seconds, as in 300 or 0.5"
  std::string_view meaning;
  void (*parse)(std::string_view text, Config& config);  // throws Error(usage) without the name
  std::string (*print)(const Config& config);            // the inverse; secrets as "(set)" or ""
};

std::span<const Variable> variables();

/// Throws Error(usage) that names the variable and what it takes. PEAL_SECRET_FILE names a file
/// that holds the secret. A variable that begins with PEAL_ and is in no table is not an error.
Config config_from(const Environment& environment);

}  // namespace peal
