#include "peal/launch/elastic/starter.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/elastic/discovery.h"

namespace peal::launch::elastic {

Error remote_host_error(const std::string& host) {
  return Error(ErrorKind::kUnsupported,
               fmt::format("{} is not this machine: elastic jobs start workers only on this "
                           "machine, under names such as localhost and 127.0.0.1",
                           host));
}

void LocalStarter::start(const std::string& host, const RankCommand& command, int out, int err) {
  if (!is_this_machine(host)) throw remote_host_error(host);
  guard_.start(command, out, err);
}

}  // namespace peal::launch::elastic
