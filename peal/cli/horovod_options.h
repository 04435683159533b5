// The options of horovodrun on the command line of `peal run`.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "peal/cli/horovod_settings.h"

namespace peal::cli {

class HorovodOptions final {
 public:
  /// Declares the options of the table. `command` must outlive this object.
  explicit HorovodOptions(CLI::App& command);
  HorovodOptions(const HorovodOptions&) = delete;

  /// The options that were parsed, in their order.
  std::vector<GivenOption> given() const;

 private:
  struct Declared {
    const HorovodOption* option;
    std::string value;  // of a switch; empty: the option has values
  };
  void declare_switch(const HorovodOption& option);
  void declare_value(const HorovodOption& option);

  CLI::App& command_;
  std::map<const CLI::Option*, Declared> declared_;
};

/// `argument` with two hyphens if it is a long option of `command` with one: "-hostfile=a" becomes
/// "--hostfile=a". "-cb" becomes "--check-build".
std::string with_two_hyphens(const CLI::App& command, const std::string& argument);

}  // namespace peal::cli
