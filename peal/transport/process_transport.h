// The transport between connected processes: which link leads to which rank, and which peers are
// still there. Made by connect.cpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "peal/transport/link/contact.h"
#include "peal/transport/link/links.h"
#include "peal/transport/shm/host.h"
#include "peal/transport/transport.h"

namespace peal::transport {

struct ConnectOptions;

/// `near[r]`: whether rank r is reached by shared memory, over `host`. `host` is null if this rank
/// is alone on its host among several. `links` lead to the other ranks.
/// Errors: resource.
std::unique_ptr<Transport> make_process_transport(const ConnectOptions& options,
                                                  std::span<const Contact> contacts,
                                                  std::vector<bool> near,
                                                  std::unique_ptr<Host> host,
                                                  Links links);

}  // namespace peal::transport
