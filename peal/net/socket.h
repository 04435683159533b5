// Stream sockets as functions over descriptors. All descriptors are non-blocking and close-on-exec,
// and forked children do not get them (system/withheld.h). No function here raises SIGPIPE. Only
// this folder calls ::socket.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/base/units.h"
#include "peal/net/address.h"
#include "peal/system/fd.h"

namespace peal::net {

/// Listens on exactly this address (port 0: any free port). IPv6 sockets accept IPv6 only.
/// Errors: resource, which names the port or address that is in use and says what to do.
Fd listen_on(const Address& address);

/// Reserves a port (0: any free port) for another process without listening. While the result
/// lives, the system does not give this port to a process that asks for any free port. In the other
/// process, `listen_on` with exactly this address succeeds. So does any server that sets
/// SO_REUSEADDR.
/// Errors: resource.
Fd reserve(const Address& address);

/// Two connected unix sockets, for a process and its forked child. The child does get both ends.
/// Errors: resource.
struct SocketPair {
  Fd a;
  Fd b;
};
SocketPair make_socket_pair();

/// The address that a socket is bound to, with its port.
Address local_address(int fd);
/// Errors: peer_lost (the connection has ended).
Address peer_address(int fd);
/// The address from which this machine reaches `host`, an address without a port. Sends nothing.
/// Empty if there is no route, or `host` is not an address.
std::string own_address_towards(const std::string& host);
/// The other end, for messages: "127.0.0.1:4711", or a description if it has no such address.
std::string peer_name(int fd);

/// A connection that is being made, in steps that do not block.
/// Threads: one at a time.
class Connecting {
 public:
  /// Errors: resource; peer_lost (the system does not know this kind of address).
  explicit Connecting(const Address& address);

  /// Continues. Returns the connection once it is made.
  /// Errors: peer_lost (refused or unreachable; `what()` names the address).
  std::optional<Fd> advance();
  /// The descriptor that poll(2) reports as writable when `advance` can continue. -1 while the
  /// queue of a unix listener is full, because poll(2) does not report the end of that.
  int fd() const { return has_begun_ ? fd_.get() : -1; }

 private:
  Address address_;
  Fd fd_;
  bool has_begun_ = false;
};

/// Connects. Errors: timeout; peer_lost (refused or unreachable; `what()` names the address).
/// Throws Interrupted, as do the functions below that take an Interrupt.
Fd connect_to(const Address& address, Deadline deadline, const Interrupt& interrupt = {});

/// As connect_to, but tries all addresses and retries until the deadline, because the listener may
/// start later. The pauses grow up to 250 ms.
/// Errors: peer_lost (names all addresses and the last failure).
Fd connect_patiently(const std::vector<Address>& addresses,
                     Deadline deadline,
                     const Interrupt& interrupt = {});

/// The next connection, or nothing at the deadline.
std::optional<Fd> accept_from(int listener, Deadline deadline);

/// The result of a transfer that does not block.
struct Moved {
  Bytes bytes;
  bool closed = false;  // end of file or reset: nothing more will move
  bool held = false;    // for streams that hold bytes back: see stream.h
};
Moved try_write(int fd, std::span<const std::span<const std::byte>> pieces);
Moved try_read(int fd, std::span<std::byte> into);

/// Move all bytes, or throw: timeout, peer_lost.
void write_all(int fd, std::span<const std::byte> data, Deadline deadline);
void read_all(int fd, std::span<std::byte> into, Deadline deadline);

/// Send and receive descriptors over a unix socket, with one byte of payload.
void send_fds(int fd, std::span<const int> fds, Deadline deadline);
std::vector<Fd> receive_fds(int fd, std::size_t count, Deadline deadline);

/// Whether the other end has closed the stream. Reads no bytes. Threads: any.
bool is_closed(int fd);

/// Closes a stream without loss: the other end gets all bytes that were written, then the end of
/// the file, even if it is still writing. (Closing alone would reset a connection with unread
/// bytes, and data in flight would be lost.)
void hang_up(Fd fd) noexcept;

/// Ends one direction of a stream: the other end gets all bytes that were written, then the end of
/// the file, and may continue to write. Threads: any, while others use the descriptor.
void end_writing(int fd) noexcept;

/// Ends both directions of a stream at once, whatever the other end does. Every read and write
/// finds the stream closed. Threads: any, while others use the descriptor.
void cut_off(int fd) noexcept;

/// The process at the other end of a unix socket.
struct Neighbour {
  uid_t user = 0;
  pid_t process = 0;  // 0 if the process is in another PID namespace that is not visible here
};
Neighbour neighbour_at(int fd);

/// poll(2) with a deadline, restarted after signals. Returns whether any entry is ready.
bool poll_until(std::span<pollfd> entries, Deadline deadline);
bool poll_until(std::span<pollfd> entries, Deadline deadline, const Interrupt& interrupt);

/// Disables Nagle's algorithm.
void set_no_delay(int fd);

}  // namespace peal::net
