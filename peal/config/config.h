// All settings from the environment, read once at the edge. One table drives parsing, printing and
// the docs. (`rendezvous` reads the identity of a process: RANK, WORLD_SIZE and similar variables.)
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/link_protection.h"
#include "peal/base/secret.h"
#include "peal/base/units.h"
#include "peal/config/environment.h"
#include "peal/config/fault_plan.h"

namespace peal {

/// The transport between the ranks of a group.
enum class TransportChoice : unsigned char {
  kAuto,  // shared memory inside a host, TCP between hosts
  kShm,   // shared memory only: an error if ranks are on several hosts
  kTcp,   // TCP everywhere
};

inline constexpr std::array kAllTransportChoices = {
    TransportChoice::kAuto, TransportChoice::kShm, TransportChoice::kTcp};

/// "auto", "shm", "tcp"
std::string_view name_of(TransportChoice choice);

/// Whether connections over a network are encrypted.
enum class Tls : unsigned char { kOff, kOn };

/// The check of network connections that are not encrypted. Encryption includes a check.
enum class Integrity : unsigned char {
  kNone,  // TCP's own sum of 16 bits
  kCrc,   // a CRC of 32 bits for each record of up to 64 KiB
};

/// Whether a rendezvous that other machines can reach needs a secret.
enum class Secrecy : unsigned char { kRequired, kWaived };

struct Config {
  /// Known only to the ranks of the job; every connection is authenticated with it.
  Secret secret;
  /// Whether ranks of several machines may meet without a secret.
  Secrecy secrecy = Secrecy::kRequired;
  /// The path in PEAL_SECRET_FILE; the file is read only if PEAL_SECRET is not set.
  std::string secret_file = {};
  /// The network interfaces to publish and connect from; see rendezvous/interfaces.h. Empty: all.
  std::string interfaces;
  TransportChoice transport = TransportChoice::kAuto;
  /// The congestion control of TCP between ranks, by the system's name: "cubic". Empty: the
  /// default.
  std::string congestion;
  Tls tls = Tls::kOff;
  Integrity integrity = Integrity::kNone;
  /// Whether a rank proves each new schedule before its first use; see
  /// backends/native/table_planner.h.
  bool verify = false;
  /// For rendezvous, connection and each operation without its own timeout.
  Timeout timeout = std::chrono::minutes(5);
  /// The time between two heartbeats to a rank of another host, and how long such a host may be
  /// silent before it counts as lost; see transport/liveness/heartbeats.h.
  Timeout heartbeat = std::chrono::milliseconds(100);
  Timeout heartbeat_limit = std::chrono::milliseconds(800);
  /// The largest group that makes all its links at its start; see transport/link/linker.h.
  int linked_at_start = 16;
  /// The algorithm for every operation that it supports; empty: chosen by `tune`.
  std::string algorithm;
  /// The algorithm for each operation and size, as rows of plan/table.h before the built-in rows.
  std::string tune = {};
  /// The file of these rows; empty if PEAL_TUNE contains the rows.
  std::string tune_file = {};
  /// The memory for staging that a rank shares with its host.
  Bytes stage = 3_MiB;
  /// The folder in which each rank keeps a record of its last operations, rank-N.flight, which
  /// survives the rank; empty: in memory. See observe/flight_recorder.h.
  std::string flight_dir = {};
  /// Failures to inject, as a rehearsal; see config/fault_plan.h.
  FaultPlan faults = {};
  /// The file of these faults; empty if PEAL_INJECT contains the faults.
  std::string faults_file = {};

  friend bool operator==(const Config&, const Config&) = default;
};

/// The variable of Config::flight_dir. Several folders read or set it without a Config.
inline constexpr const char* kFlightDirVariable = "PEAL_FLIGHT_DIR";

/// The path of a rank's stop flag, by which the launcher asks the rank to stop
/// (system/stop_flag.h).
inline constexpr const char* kStopFlagVariable = "PEAL_STOP_FLAG";

/// The protection of network connections by `tls` and `integrity`.
LinkProtection link_protection_of(const Config& config);

/// Whether a message may show the value of a variable.
enum class Shown : unsigned char { kAsItIs, kNever };

/// One row of the table.
struct Variable {
  std::string_view name;   // "PEAL_TIMEOUT"
  std::string_view value;  // the accepted values: "seconds, as in 300 or 0.5"
  std::string_view meaning;
  void (*parse)(std::string_view text, Config& config);  // throws Error(usage), whose text adds to
                                                         // `value`; then `config` is unchanged
  std::string (*print)(const Config& config);            // the inverse; a secret as "(set)" or ""
  Shown shown = Shown::kAsItIs;
};

/// In reading order: PEAL_SECRET before PEAL_SECRET_FILE.
std::span<const Variable> variables();

/// A variable that other code reads, and that is not a part of Config.
struct OtherVariable {
  std::string_view name;
  std::string_view meaning;
};

std::span<const OtherVariable> other_variables();

/// A value that a variable does not accept.
struct WrongValue {
  std::string_view name;
  std::string problem;  // `NAME="value": it takes ...`
};

/// The valid settings; a variable with a wrong value has its default in `config`.
struct ConfigReading {
  Config config;
  std::vector<WrongValue> wrong;
};

ConfigReading read_config(const Environment& environment);

/// The configuration from the environment.
/// Errors: usage, which names each variable with a wrong value and the accepted values. A variable
///   that begins with PEAL_ and is in no table is not an error (see cli/unknown_variables.h).
Config config_from(const Environment& environment);

}  // namespace peal
