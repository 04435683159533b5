#include "peal/cli/own_hosts.h"

#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/own_host.h"
#include "peal/rendezvous/interfaces.h"

namespace peal::cli {
namespace {

std::string name_of_this_machine() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

void check_own_hosts(std::span<const launch::HostSlots> hosts) {
  if (hosts.empty()) return;
  std::vector<net::Address> addresses;
  for (const auto& interface : rendezvous::own_interfaces(rendezvous::LinkLocal::kWith)) {
    addresses.push_back(interface.address);
  }
  const std::string own = name_of_this_machine();
  for (const launch::HostSlots& host : hosts) {
    if (launch::is_own_host(host.name, own, addresses)) continue;
    throw Error(ErrorKind::kUnsupported,
                fmt::format("host {} is not this machine ({}), and peal run starts ranks only "
                            "here: name localhost, {} or an address of this machine. To start "
                            "ranks on several machines, use mpirun, srun or torchrun",
                            host.name,
                            own,
                            own));
  }
}

}  // namespace peal::cli
