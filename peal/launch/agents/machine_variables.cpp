#include "peal/launch/agents/machine_variables.h"

#include <algorithm>
#include <array>

namespace peal::launch::agents {
namespace {

constexpr std::array<std::string_view, 18> kNames = {
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "MAIL",
    "HOST",
    "HOSTNAME",
    "PWD",
    "OLDPWD",
    "TMPDIR",
    "TMP",
    "TEMP",
    "DISPLAY",
    "XAUTHORITY",
    "TERM",
    "SHLVL",
    "LS_COLORS",
    "WINDOWID",
};
constexpr std::array<std::string_view, 3> kBeginnings = {"SSH_", "XDG_", "DBUS_"};

}  // namespace

bool belongs_to_machine(std::string_view name) {
  return name == "_" || std::ranges::count(kNames, name) > 0 ||
         std::ranges::any_of(
             kBeginnings, [&](std::string_view beginning) { return name.starts_with(beginning); });
}

Variables part_of(const Variables& variables, Part part) {
  Variables chosen;
  for (const auto& [name, value] : variables) {
    if (belongs_to_machine(name) == (part == Part::kMachine)) chosen.emplace(name, value);
  }
  return chosen;
}

}  // namespace peal::launch::agents
