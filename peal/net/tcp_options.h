// Reads what TCP knows about the network path of a connection, and sets how TCP uses the path.
// Called by transport, for the connections between ranks.
#pragma once

#include <string>

#include "peal/base/units.h"

namespace peal::net {

/// The congestion control of a TCP connection: "cubic". Empty if the system does not say it.
std::string congestion_control(int fd);
/// Errors: usage, which lists the available ones (the system may allow some only for root).
void set_congestion_control(int fd, const std::string& name);
/// Throws what `set_congestion_control` would throw on a connection.
void check_congestion_control(const std::string& name);

/// Limits the send buffer: the bytes that were written and are not acknowledged, without the
/// kernel's bookkeeping. A full buffer accepts no more bytes. A buffer smaller than the path's
/// capacity (`line_capacity`) slows the connection down.
void bound_send_buffer(int fd, Bytes size);
/// Removes the limit: the system lets the buffer grow as the path needs it.
void unbound_send_buffer(int fd);

/// The bytes that were sent and that the other end's system has not acknowledged. 0 if the system
/// does not say it.
Bytes unacknowledged(int fd);

/// The bytes that have come and were not read. 0 if the system does not say it.
Bytes unread(int fd);

/// Makes TCP retransmit unacknowledged data at even intervals, instead of doubling each interval.
/// For connections that send little and must not be silent for long. Linux does so for six
/// retransmissions, while fewer than four packets are in flight. On other systems nothing changes.
void repeat_evenly(int fd);

/// The bytes in flight on a busy path: the current delivery rate times the shortest round trip. 0
/// if the system does not say it or nothing has been sent yet.
Bytes line_capacity(int fd);

}  // namespace peal::net
