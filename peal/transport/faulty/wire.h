// Puts faulty directions (faulty_direction.h) into a connection between two ranks, beneath its
// seal: a fault changes checked and encrypted bytes too. connect.cpp calls it for the links that
// the user's plan names.
#pragma once

#include <memory>

#include "peal/net/stream.h"
#include "peal/transport/faulty/faulty_direction.h"

namespace peal::transport {

/// Returns the same stream; its incoming bytes pass `incoming`. The peer does the same for the
/// other direction. The descriptor of the stream keeps its number, but becomes one end of a pair. A
/// thread moves bytes between the other end of the pair and the connection.
/// Errors: resource.
/// Cost: a thread, three descriptors, and twice the system calls.
std::unique_ptr<net::Stream> with_faults(std::unique_ptr<net::Stream> stream,
                                         DirectionFaults incoming);

}  // namespace peal::transport
