// Everything that the environment can set, read once at the edge. One table drives parsing,
// printing and the docs. (Who a process is - RANK, WORLD_SIZE and their like - is `rendezvous`'s
// matter.)
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/environment.h"
#include "peal/base/fault_plan.h"
#include "peal/base/sealing.h"
#include "peal/base/secret.h"
#include "peal/base/units.h"

namespace peal {

/// How the ranks of a group reach each other.
enum class TransportChoice : unsigned char {
  kAuto,  // shared memory inside a host, TCP between hosts
  kShm,   // shared memory only: an error where ranks are on several hosts
  kTcp,   // TCP everywhere
};

inline constexpr std::array kAllTransportChoices = {
    TransportChoice::kAuto, TransportChoice::kShm, TransportChoice::kTcp};

/// "auto", "shm", "tcp"
std::string_view name_of(TransportChoice choice);

/// Whether connections over a network are encrypted.
enum class Tls : unsigned char { kOff, kOn };

/// What such connections are checked by where they are not encrypted, which includes it.
enum class Integrity : unsigned char {
  kNone,  // TCP's own sum of 16 bits
  kCrc,   // a CRC of 32 bits for each record of up to 64 KiB
};

/// Whether a meeting that other machines can come to needs a secret.
enum class Secrecy : unsigned char { kRequired, kWaived };

struct Config {
  /// Known to all ranks of the job and nobody else; every connection is proved with it.
  Secret secret;
  /// Whether ranks of several machines may meet without a secret.
  Secrecy secrecy = Secrecy::kRequired;
  /// As PEAL_SECRET_FILE says; read only if there is no PEAL_SECRET.
  std::string secret_file = {};
  /// Which network interfaces to publish and connect from; see rendezvous/interfaces.h. Empty: all.
  std::string interfaces;
  TransportChoice transport = TransportChoice::kAuto;
  /// Of the TCP connections between ranks, as the system names it: "cubic". Empty: its own choice.
  std::string congestion;
  Tls tls = Tls::kOff;
  Integrity integrity = Integrity::kNone;
  /// For rendezvous, connection and every operation that is not given its own.
  Timeout timeout = std::chrono::minutes(5);
  /// Between two beats to a rank of another host, and for how long such a host may answer nothing
  /// before it is lost; see transport/heartbeats.h.
  Timeout heartbeat = std::chrono::milliseconds(100);
  Timeout heartbeat_limit = std::chrono::milliseconds(800);
  /// The algorithm to use for every operation that it applies to; empty: by `tune`.
  std::string algorithm;
  /// Which algorithm is best for what, as rows of plan/table.h that go before the built-in ones.
  std::string tune = {};
  /// Where it was read from; empty where PEAL_TUNE is the text itself.
  std::string tune_file = {};
  /// Scratch that a rank shares with its host for staging.
  Bytes stage = 3_MiB;
  /// The folder in which each rank keeps a record of its last operations, rank-N.flight, that
  /// survives it; empty: in memory. See observe/flight_recorder.h.
  std::string flight_dir = {};
  /// What is to go wrong, as a rehearsal; see base/fault_plan.h.
  FaultPlan faults = {};
  /// Where it was read from; empty where PEAL_INJECT is the text itself.
  std::string faults_file = {};

  friend bool operator==(const Config&, const Config&) = default;
};

/// What the two variables come to.
Sealing sealing_of(const Config& config);

/// Whether a message may show what a variable was set to.
enum class Shown : unsigned char { kAsItIs, kNever };

/// One row of the table.
struct Variable {
  std::string_view name;   // "PEAL_TIMEOUT"
  std::string_view value;  // what it takes: "seconds, as in 300 or 0.5"
  std::string_view meaning;
  void (*parse)(std::string_view text, Config& config);  // throws Error(usage) with what the row
                                                         // does not say, and leaves `config` be
  std::string (*print)(const Config& config);            // the inverse; secrets as "(set)" or ""
  Shown shown = Shown::kAsItIs;
};

/// In the order in which they are read: PEAL_SECRET goes before PEAL_SECRET_FILE.
std::span<const Variable> variables();

/// A variable that is read elsewhere, and no part of Config.
struct OtherVariable {
  std::string_view name;
  std::string_view meaning;
};

std::span<const OtherVariable> other_variables();

/// A value that a variable does not take.
struct WrongValue {
  std::string_view name;
  std::string problem;  // `NAME="value": it takes ...`
};

/// What could be read; a variable with a wrong value has its default in `config`.
struct ConfigReading {
  Config config;
  std::vector<WrongValue> wrong;
};

ConfigReading read_config(const Environment& environment);

/// Throws Error(usage) that names each variable with a wrong value and what it takes. A variable
/// that begins with PEAL_ and is in no table is not an error (see unknown_variables.h).
Config config_from(const Environment& environment);

}  // namespace peal
