// The transport between connected processes: which link leads to which rank, and which peers are
// still there. Made by connect.cpp.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "peal/system/fd.h"
#include "peal/transport/link/contact.h"
#include "peal/transport/link/links.h"
#include "peal/transport/shm/host.h"
#include "peal/transport/transport.h"

namespace peal::transport {

struct ConnectOptions;

/// The connections of a rank to the other ranks of its group.
struct Connected {
  /// `near[r]`: whether rank r is reached by shared memory, over `host`.
  std::vector<bool> near;
  std::unique_ptr<Host> host;  // null if this rank is alone on its host among several
  Links links;                 // to ranks that are not near
  /// The links that are made later, and where this rank listens for them.
  LinkPlan plan;
  std::vector<Fd> listeners;
};

/// Errors: resource.
std::unique_ptr<Transport> make_process_transport(const ConnectOptions& options,
                                                  std::span<const Contact> contacts,
                                                  Connected connected);

}  // namespace peal::transport
