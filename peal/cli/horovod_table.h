// The options of horovodrun as a table, which drives parsing, the config file, the variables of the
// ranks, and the help. Read by the other horovod_*.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace peal::cli {

/// The values that an option accepts.
enum class Accepts : unsigned char {
  kSwitch,     // none on the command line; true or false in a config file
  kWhole,      // a whole number, 0 or more
  kPositive,   // a whole number, 1 or more
  kMegabytes,  // as kWhole
  kNumber,     // a number, 0 or more
  kFraction,   // a number from 0 to 1
  kLevel,      // TRACE, DEBUG, INFO, WARNING, ERROR or FATAL
  kText,       // any text but the empty one
};

/// What the variable of a switch tells.
enum class Sense : unsigned char {
  kIsOn,
  kIsOff,  // 1 if the switch is off, as in HOROVOD_STALL_CHECK_DISABLE
};

/// Which of its names the help shows.
enum class Shown : unsigned char { kName, kOpposite, kNothing };

struct HorovodOption {
  std::string_view name;              // identifies the option
  std::string_view other_names = {};  // separated by commas
  std::string_view opposite = {};     // names that switch it off, separated by commas
  Accepts accepts = Accepts::kSwitch;
  std::string_view value = {};    // what the help calls the value
  int values = 1;                 // of the option, unless it is a switch
  std::string_view heading = {};  // in the help
  std::string_view meaning = {};  // in the help
  Shown shown = Shown::kName;
  std::string_view variable = {};  // for the ranks; empty: none
  Sense sense = Sense::kIsOn;
  std::string_view place = {};      // in a config file: "params.cycle_time_ms"; empty: none
  std::string_view no_effect = {};  // why it has no effect on peal; empty: it has an effect
};

/// In the order of the help.
std::span<const HorovodOption> horovod_options();

/// The option with this name; null if the name is unknown.
const HorovodOption* horovod_option(std::string_view name);

/// The option with this place in a config file; null if the place is unknown.
const HorovodOption* horovod_option_at(std::string_view place);

/// `text` in one spelling: "1" or "0" for a switch, a level in small letters, others unchanged.
/// `source` is the option, or the place in a config file, that the error names.
/// Errors: usage if the option does not accept `text`.
std::string accepted(const HorovodOption& option, std::string_view text, std::string_view source);

/// The value of the option's variable for an accepted `value`: megabytes in bytes, a switch by its
/// sense.
std::string variable_value(const HorovodOption& option, const std::string& value);

}  // namespace peal::cli
