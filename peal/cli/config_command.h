// `peal config`: the environment variables that peal reads, with what they are set to.
#pragma once

#include <string>

#include "peal/base/environment.h"

namespace peal::cli {

/// The table of base/config.h as text. Throws Error(usage) when a variable has a wrong value.
std::string describe_config(const Environment& environment);

}  // namespace peal::cli
