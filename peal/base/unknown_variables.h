// Environment variables that were meant for peal and that nothing of it reads, since their names
// are misspelt. `peal config`, `peal run` and `peal bench` tell of them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace peal {

struct UnknownVariable {
  std::string name;
  std::string_view nearest;  // the known name that was probably meant; empty where none is near

  friend bool operator==(const UnknownVariable&, const UnknownVariable&) = default;
};

/// Those of `names` that begin with PEAL_ and are in no table of config.h. The names that peal's
/// own tests read (PEAL_TEST_..., PEAL_ACCEPT) are known.
std::vector<UnknownVariable> unknown_variables(std::span<const std::string> names);

}  // namespace peal
