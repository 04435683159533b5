// From a host's name to its addresses, in bounded time. Used where ranks meet.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/net/address.h"

namespace peal::net {

/// A host's addresses, each once, without a port; or the reason why there are none.
struct Answer {
  std::vector<Address> addresses;
  std::string failure;
};

/// Answers when it can. Called on a thread of its own, and may be left there for good: it refers to
/// nothing that ends before it.
using NameService = std::function<Answer(const std::string& host)>;

/// The system's (getaddrinfo), which may take as long as its servers like.
Answer ask_system(const std::string& host);

/// An address that is written as a number, without asking anybody. `family` is one of AF_*.
Answer read_number(const std::string& host, int family);

/// All addresses of a name or number, IPv4 and IPv6, in the system's order of preference.
/// Threads: any. A service that has not answered by the deadline keeps a thread until it does,
///   since getaddrinfo cannot be stopped.
/// Errors, which name the host: usage (it has no address), timeout (the service did not answer),
///   resource (no thread could be started). Throws Interrupted.
std::vector<Address> resolve(const std::string& host,
                             std::uint16_t port,
                             Deadline deadline,
                             NameService service = ask_system,
                             const Interrupt& interrupt = {});

}  // namespace peal::net
