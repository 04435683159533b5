// Stream sockets as functions over descriptors. All descriptors are non-blocking and close-on-exec,
// and forked children do not get them (base/withheld.h); nothing here raises SIGPIPE. The only
// folder with ::socket calls.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/fd.h"
#include "peal/base/interrupt.h"
#include "peal/base/units.h"
#include "peal/net/address.h"

namespace peal::net {

/// Listens on exactly this address (port 0: any free one). IPv6 sockets take IPv6 only.
/// Errors: resource, which says who holds the port ("address already in use") and what to do.
Fd listen_on(const Address& address);

/// Keeps a port (0: any free one) for another process without listening: while the result lives the
/// system gives the port to nobody who asks for any, and `listen_on` this very address succeeds
/// there, as does every server that sets SO_REUSEADDR. Errors: resource.
Fd reserve(const Address& address);

/// The address that a socket is bound to, with its port.
Address local_address(int fd);
/// Errors: peer_lost (the connection is no more).
Address peer_address(int fd);
/// The other end for messages: "127.0.0.1:4711", or words where nothing is known of it.
std::string peer_name(int fd);

/// Connects. Errors: timeout; peer_lost when refused or unreachable (`what()` names the address).
/// Throws Interrupted, as do those below that are given an Interrupt.
Fd connect_to(const Address& address, Deadline deadline, const Interrupt& interrupt = {});

/// As connect_to, but tries again while nobody listens there yet, with a short growing pause.
Fd connect_patiently(const std::vector<Address>& addresses,
                     Deadline deadline,
                     const Interrupt& interrupt = {});

/// The next connection, or nothing at the deadline.
std::optional<Fd> accept_from(int listener, Deadline deadline);

/// What became of a transfer that does not block.
struct Moved {
  Bytes bytes;
  bool closed = false;  // end of file, reset: nothing more will move
  bool held = false;    // of a stream that holds bytes back: see stream.h
};
Moved try_write(int fd, std::span<const std::span<const std::byte>> pieces);
Moved try_read(int fd, std::span<std::byte> into);

/// Everything or an error: timeout, peer_lost.
void write_all(int fd, std::span<const std::byte> data, Deadline deadline);
void read_all(int fd, std::span<std::byte> into, Deadline deadline);

/// Descriptors over a unix socket, with one byte of payload.
void send_fds(int fd, std::span<const int> fds, Deadline deadline);
std::vector<Fd> receive_fds(int fd, std::size_t count, Deadline deadline);

/// True once the other end of a stream is gone; takes no bytes. Any thread.
bool is_closed(int fd);

/// Ends a stream in order: the other end gets everything that was written to it and then the end of
/// the file, even if it is still writing itself. (Closing alone would reset the connection where
/// something is unread, and what is under way would be lost.)
void hang_up(Fd fd) noexcept;

/// Ends one direction of a stream: the other end gets everything that was written to it and then
/// the end of the file, and may go on writing itself. Any thread, while others use the descriptor.
void end_writing(int fd) noexcept;

/// Ends both directions of a stream at once, whatever the other end does: whoever reads or writes
/// it finds it closed. Any thread, while others use the descriptor.
void cut_off(int fd) noexcept;

/// Who is at the other end of a unix socket.
struct Neighbour {
  uid_t user = 0;
  pid_t process = 0;  // 0 where it cannot be seen from here: another namespace of processes
};
Neighbour neighbour_at(int fd);

/// poll(2) with a deadline, restarted after signals. Returns whether any entry is ready.
bool poll_until(std::span<pollfd> entries, Deadline deadline);
bool poll_until(std::span<pollfd> entries, Deadline deadline, const Interrupt& interrupt);

/// No Nagle delay.
void set_no_delay(int fd);

}  // namespace peal::net
