#include "peal/net/stream.h"

#include <array>
#include <exception>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::net {
namespace {

void wait_for(const Stream& stream, short events, Deadline deadline, std::string_view doing) {
  pollfd entry{stream.fd(), events, 0};
  if (poll_until({&entry, 1}, deadline)) return;
  throw Error(ErrorKind::kTimeout,
              fmt::format("{} {} took too long", doing, peer_name(stream.fd())));
}

Error closed(const Stream& stream, std::string_view doing, std::size_t done, std::size_t all) {
  return Error(ErrorKind::kPeerLost,
               fmt::format("{} {}: the connection was closed after {} of {} bytes",
                           doing,
                           peer_name(stream.fd()),
                           done,
                           all));
}

}  // namespace

void write_all(Stream& stream, std::span<const std::byte> data, Deadline deadline) {
  std::size_t done = 0;
  while (done < data.size()) {
    const std::array pieces = {data.subspan(done)};
    const Moved moved = stream.try_write(pieces);
    if (moved.closed) throw closed(stream, "sending to", done, data.size());
    done += static_cast<std::size_t>(moved.bytes.value);
    if (moved.bytes == 0_B) wait_for(stream, POLLOUT, deadline, "sending to");
  }
  while (!stream.try_flush()) wait_for(stream, POLLOUT, deadline, "sending to");
}

void read_all(Stream& stream, std::span<std::byte> into, Deadline deadline) {
  std::size_t done = 0;
  while (done < into.size()) {
    const Moved moved = stream.try_read(into.subspan(done));
    if (moved.closed) throw closed(stream, "receiving from", done, into.size());
    done += static_cast<std::size_t>(moved.bytes.value);
    if (moved.bytes == 0_B) wait_for(stream, POLLIN, deadline, "receiving from");
  }
}

void hang_up(Stream& stream) noexcept {
  try {
    stream.try_flush();
  } catch (const std::exception&) {  // the stream is broken; only closing remains
  }
  hang_up(stream.release());
}

}  // namespace peal::net
