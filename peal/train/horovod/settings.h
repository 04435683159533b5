// The environment variables of Horovod, read by init(). One table has them all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/config/environment.h"

namespace peal::hvd {

enum class Switch : std::uint8_t { kOff, kOn };

/// The values of the variables; a variable that is not set has Horovod's default.
struct Settings {
  Bytes fusion_threshold = 128_MiB;
  int cache_capacity = 1024;
  Switch group_fusion = Switch::kOn;
  Switch dynamic_process_sets = Switch::kOff;
  /// A path, or "DYNAMIC". "{rank}" in a path becomes the rank, and each rank has its own file;
  /// without it, only rank 0 has a file. Empty: no timeline, also not later.
  std::string timeline = {};
  Switch timeline_marks_rounds = Switch::kOff;
  Timeout stall_warning = std::chrono::seconds(60);  // 0: never
  Timeout stall_shutdown = std::chrono::seconds(0);  // 0: never
  Timeout timeout = kGroupTimeout;
  std::string interfaces = {};  // as PEAL_INTERFACE
  Switch elastic = Switch::kOff;
  Switch autotune = Switch::kOff;
  std::string autotune_log = {};
  Switch reports = Switch::kOn;  // off at the log levels error and fatal

  std::optional<int> rank = {}, size = {};
  std::optional<int> local_rank = {}, local_size = {};
  std::optional<int> cross_rank = {}, cross_size = {};
  std::string host = {};

  friend bool operator==(const Settings&, const Settings&) = default;
};

/// One row of the table.
struct Variable {
  enum class Use : std::uint8_t {
    kHonoured,
    kNotNeeded,  // accepted, without an effect on peal
  };

  std::string_view name;  // "HOROVOD_FUSION_THRESHOLD"
  Use use;
  std::string_view meaning;
  /// Throws Error(usage) for a wrong value. Null if the variable is not needed.
  void (*parse)(const std::string& text, Settings& settings);
};

std::span<const Variable> variables();

/// Errors: usage (a wrong value; names the variable).
Settings read_settings(const Environment& environment);

/// A line for variables that are set and have no effect, and a line for those that are unknown.
/// `names`: of all variables of the process.
std::vector<std::string> remarks_on(const std::vector<std::string>& names);

/// The names of all environment variables of this process.
std::vector<std::string> environment_names();

}  // namespace peal::hvd
