// The options of torchrun that `peal run` accepts, as a table. -n, which torchrun calls
// --nproc-per-node, and --log-dir are `peal run`'s own. Read by torchrun_options.cpp.
#pragma once

#include <span>
#include <string_view>

namespace peal::cli {

struct TorchrunOption {
  std::string_view name;              // identifies the option
  std::string_view other_names = {};  // separated by commas
  std::string_view value = {};        // what the help calls the value; empty: a switch
  std::string_view heading = {};      // in the help
  std::string_view meaning = {};      // in the help
  std::string_view no_effect = {};    // why it has no effect on peal; empty: it has an effect
};

/// In the order of the help.
std::span<const TorchrunOption> torchrun_options();

}  // namespace peal::cli
