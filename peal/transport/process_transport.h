// The transport between processes once they are connected: which of its links leads to whom, and
// who of those at their ends is still there. Made by connect.cpp.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peal/transport/contact.h"
#include "peal/transport/links.h"
#include "peal/transport/pulse.h"
#include "peal/transport/shm/host.h"
#include "peal/transport/transport.h"

namespace peal::transport {

/// `group`: its name, for errors. `near[r]`: whether rank r is reached by shared memory, over
/// `host`, which is null where that is so for none but `self` among several; to the others there
/// are `links`. Errors: resource.
std::unique_ptr<Transport> make_process_transport(const std::string& group,
                                                  Rank self,
                                                  std::span<const Contact> contacts,
                                                  std::vector<bool> near,
                                                  std::unique_ptr<Host> host,
                                                  Links links,
                                                  const PulseLimits& pulse);

}  // namespace peal::transport
