// Resolves a host's name to its addresses, with a deadline. Used when ranks meet.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/net/address.h"

namespace peal::net {

/// A host's addresses without a port and without duplicates, or why it has no address.
struct Answer {
  std::vector<Address> addresses;
  std::string failure;
};

/// Looks up a host; may take any time. Called on its own thread, which may outlive the caller. So
/// the function must not refer to objects that may end before the thread.
using NameService = std::function<Answer(const std::string& host)>;

/// The system's name service (getaddrinfo). Its servers decide how long it takes.
Answer ask_system(const std::string& host);

/// Parses a numeric address, without the name service. `family` is one of AF_*.
Answer read_number(const std::string& host, int family);

/// All addresses of a name or number, IPv4 and IPv6, in the system's order of preference.
/// Threads: any. If the service does not answer by the deadline, its thread remains until it
///   answers, since getaddrinfo cannot be stopped.
/// Errors, which name the host: usage (the host has no address), timeout (the service did not
///   answer), resource (no thread could be started). Throws Interrupted.
std::vector<Address> resolve(const std::string& host,
                             std::uint16_t port,
                             Deadline deadline,
                             NameService service = ask_system,
                             const Interrupt& interrupt = {});

}  // namespace peal::net
