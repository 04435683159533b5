// What TCP knows of the line under a connection, and how it is told to use it. Called by transport,
// for the connections between ranks.
#pragma once

#include <string>

#include "peal/base/units.h"

namespace peal::net {

/// Which congestion control a TCP connection sends by: "cubic". Empty where the system does not
/// say.
std::string congestion_control(int fd);
/// Errors: usage, which says what the system has (it may let root alone choose some of it).
void set_congestion_control(int fd, const std::string& name);
/// Throws what `set_congestion_control` would throw on a connection.
void check_congestion_control(const std::string& name);

/// How much the system keeps of what has been sent and is not acknowledged, its own bookkeeping not
/// counted; more is taken from nobody. Less than what the line holds slows a connection down.
void bound_send_buffer(int fd, Bytes size);
/// Leaves the size to the system again, which lets it grow as far as the line asks for.
void unbound_send_buffer(int fd);

/// What has been sent and the other end's system has not said that it has. 0 where the system does
/// not say.
Bytes unacknowledged(int fd);

/// What has come and was not read. 0 where the system does not say.
Bytes unread(int fd);

/// Tells the system to repeat what is not acknowledged at even times, where otherwise each pause is
/// twice the last: for connections that hardly send anything and must not be silent for long. Linux
/// does so while fewer than four packets are under way, six times; elsewhere nothing changes.
void repeat_evenly(int fd);

/// What is under way at once when the line is busy: the rate at which bytes arrive now, times the
/// shortest round trip seen. 0 where the system does not say or nothing has been sent yet.
Bytes line_capacity(int fd);

}  // namespace peal::net
