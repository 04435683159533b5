// Puts faulty lines (line.h) into a connection between two ranks, beneath whatever seals it: what
// a wire does to bytes it does to checked and encrypted ones. connect.cpp calls it for the links
// that the user's plan names.
#pragma once

#include <memory>

#include "peal/net/stream.h"
#include "peal/transport/faulty/line.h"

namespace peal::transport {

/// The same stream, of which what comes passes `incoming`. The other end sees to the other
/// direction. The descriptor that it polls stays the same number, and is now one of a pair; a
/// thread moves bytes between the other one of the pair and the connection.
/// Errors: resource. Cost: a thread, three descriptors, and twice the system calls.
std::unique_ptr<net::Stream> with_faults(std::unique_ptr<net::Stream> stream, LineFaults incoming);

}  // namespace peal::transport
