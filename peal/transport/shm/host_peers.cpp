#include "peal/transport/shm/host_peers.h"

#include <charconv>
#include <string>
#include <utility>

#include "peal/net/mac.h"

namespace peal::transport {
namespace {

std::uint64_t random_number() {
  const std::string digits = net::random_hex(16);
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number;
}

}  // namespace

HostPeers::HostPeers() : number_(random_number()) {}

HostPeer HostPeers::meet(std::uint64_t number, HostPeer received) {
  return known_.with([&](auto& known) {
    std::erase_if(known, [](const auto& entry) { return entry.second.process.expired(); });
    const auto found = known.find(number);
    if (found != known.end()) {
      HostPeer before{found->second.process.lock(), found->second.alarm.lock()};
      const bool is_same = before.process && before.alarm &&
                           before.process->pid() == received.process->pid() &&
                           !before.process->has_ended();
      if (is_same) return before;
    }
    known.insert_or_assign(number, Known{received.process, received.alarm});
    alarm().watch(received.process);
    return std::move(received);
  });
}

}  // namespace peal::transport
