#include "peal/config/stop_flag_path.h"

#include "peal/config/config.h"

namespace peal {

std::string stop_flag_path(const Environment& environment) {
  return environment(kStopFlagVariable).value_or("");
}

}  // namespace peal
