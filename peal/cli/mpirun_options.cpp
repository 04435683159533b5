#include "peal/cli/mpirun_options.h"

#include <array>
#include <string>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::cli {
namespace {

constexpr const char* kHeading = "From mpirun";

struct MpirunOption {
  const char* names;
  const char* text;  // why it has no effect, or what to use instead
};

constexpr std::array kUnused = {
    MpirunOption{"--tag-output", "lines begin with [rank]; see --no-prefix"},
    MpirunOption{"--oversubscribe", "a host may have more ranks than cores"},
    MpirunOption{"--allow-run-as-root", "root may start ranks"},
};

constexpr std::array kRefused = {
    MpirunOption{"--map-by",
                 "ranks fill the hosts in their order: give the slots, as in -H h1:2,h2:2"},
    MpirunOption{"--rank-by", "the ranks of a host are always consecutive: remove the option"},
    MpirunOption{"-N,--npernode,--ppn",
                 "give the slots of each host, as in -H h1:2,h2:2, without -n"},
    MpirunOption{"--mca", "the ranks connect without Open MPI: remove the option"},
    MpirunOption{"--wdir,--wd",
                 "ranks start in the current folder: change to the other folder first"},
};

}  // namespace

void add_mpirun_options(CLI::App& command) {
  for (const auto& [names, why] : kUnused) {
    command.add_flag(names)->description(fmt::format("No effect: {}", why))->group(kHeading);
  }
  for (const auto& [names, instead] : kRefused) {
    const std::string name = std::string(names).substr(0, std::string(names).find(','));
    const auto refuse = [name, instead = instead](const std::string& /*value*/) {
      throw Error(ErrorKind::kUsage, fmt::format("{} is an option of mpirun: {}", name, instead));
    };
    command.add_option_function<std::string>(names, refuse)
        ->description(fmt::format("An error: {}", instead))
        ->type_name("VALUE")
        ->group(kHeading);
  }
}

}  // namespace peal::cli
