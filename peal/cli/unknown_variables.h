// Finds misspelt environment variables: names that look like peal's but that peal does not read.
// `peal config`, `peal run` and `peal bench` report them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace peal::cli {

struct UnknownVariable {
  std::string name;
  std::string_view nearest;  // the most similar known name; empty if no name is similar

  friend bool operator==(const UnknownVariable&, const UnknownVariable&) = default;
};

/// Those of `names` that begin with PEAL_ and are in no table of config/config.h. Names that peal's
/// tests read (PEAL_TEST_...) are known.
std::vector<UnknownVariable> unknown_variables(std::span<const std::string> names);

}  // namespace peal::cli
