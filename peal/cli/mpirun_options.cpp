#include "peal/cli/mpirun_options.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::cli {
namespace {

constexpr const char* kHeading = "From mpirun";

struct Unused {
  const char* names;
  const char* meaning;
};

constexpr std::array kUnused = {
    Unused{"--tag-output", "No effect: lines begin with [rank]; see --no-prefix"},
    Unused{"--oversubscribe", "No effect: a host may have more ranks than cores"},
    Unused{"--allow-run-as-root", "No effect: root may start ranks"},
};

struct Refused {
  const char* names;
  const char* instead;
};

constexpr std::array kRefused = {
    Refused{"--bind-to", "use --bind cores or --bind none"},
    Refused{"--map-by", "ranks fill the hosts in their order: give the slots, as in -H h1:2,h2:2"},
    Refused{"--rank-by", "the ranks of a host are consecutive"},
    Refused{"-N,--npernode", "give the slots of each host, as in -H h1:2,h2:2, without -n"},
    Refused{"--wdir,--wd", "ranks start in this folder: change to the other one before"},
};

}  // namespace

void add_mpirun_options(CLI::App& command) {
  for (const Unused& option : kUnused) {
    command.add_flag(option.names)->description(option.meaning)->group(kHeading);
  }
  for (const auto& [names, instead] : kRefused) {
    const std::string name = std::string(names).substr(0, std::string(names).find(','));
    const auto refuse = [name, instead = instead](const std::string& /*value*/) {
      throw Error(ErrorKind::kUsage, fmt::format("{} is an option of mpirun: {}", name, instead));
    };
    command.add_option_function<std::string>(names, refuse)
        ->description(fmt::format("Not here: {}", instead))
        ->type_name("VALUE")
        ->group(kHeading);
  }
}

}  // namespace peal::cli
