#include "peal/launch/outer_stop_flag.h"

#include "peal/config/environment.h"
#include "peal/config/stop_flag_path.h"

namespace peal::launch {

std::optional<StopFlag> outer_stop_flag() {
  return StopFlag::open(stop_flag_path(process_environment()));
}

}  // namespace peal::launch
