#include "peal/engine/inbox.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::engine {
namespace {

/// The size of the buffer for received elements that wait to be reduced. It fits into the L2 cache.
constexpr Bytes kBounce = 128_KiB;
/// How much of a move is read together with its header. These bytes are copied once more, which
/// costs less than another system call.
constexpr Bytes kReadAhead = 4_KiB;
constexpr Bytes kHeader(Header::kSize);

}  // namespace

Inbox::Inbox(Rank self, int ranks, transport::Channel& channel)
    : self_(self), channel_(channel), headers_(static_cast<std::size_t>(ranks)) {}

bool Inbox::receive_header(Rank peer, const Header& expected, Bytes due) {
  if (bounce_.empty()) bounce_.resize(static_cast<std::size_t>(kBounce.value));
  hold_more(peer, kHeader + std::min(due, kReadAhead));
  if (held_ < kHeader) return false;
  check(peer, expected);
  drop(kHeader);
  headers_[static_cast<std::size_t>(peer)] = expected.fingerprint.sequence;
  return true;
}

void Inbox::check(Rank peer, const Header& expected) const {
  const Fingerprint& own = expected.fingerprint;
  const auto header = Header::decode(held().first<Header::kSize>());
  if (!header) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("rank {} received bytes from rank {} that are not the header of an "
                            "operation, in {}: the ranks "
                            "are out of step, or the link is damaged",
                            self_,
                            peer,
                            describe(own)),
                {.operation = describe(own), .cause = ErrorCause::kMismatch});
  }
  if (header->fingerprint != own) throw mismatch(self_, own, peer, header->fingerprint);
  if (header->link_bytes != expected.link_bytes) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format("{}: rank {} sends {} bytes to rank {}, which expects {}: their counts differ",
                    describe(own),
                    peer,
                    header->link_bytes.value,
                    self_,
                    expected.link_bytes.value),
        {.operation = describe(own), .cause = ErrorCause::kMismatch});
  }
}

bool Inbox::receive(Rank peer, std::span<std::byte> place) {
  if (held_ > 0_B) {
    const std::size_t size = std::min(size_of_held(), place.size());
    std::copy_n(bounce_.begin(), size, place.begin());
    use(Bytes(static_cast<std::int64_t>(size)));
    return true;
  }
  const Bytes taken = take(peer, place);
  received_ += taken;
  return taken > 0_B;
}

bool Inbox::hold_more(Rank peer, Bytes most) {
  const std::size_t room = std::min(static_cast<std::size_t>(most.value), bounce_.size());
  const Bytes taken = take(peer, std::span(bounce_).first(room).subspan(size_of_held()));
  held_ += taken;
  return taken > 0_B;
}

void Inbox::use(Bytes size) {
  drop(size);
  received_ += size;
}

Bytes Inbox::take_received_size() { return std::exchange(came_, Bytes(0)); }

void Inbox::drop(Bytes size) {
  const auto rest = held().subspan(static_cast<std::size_t>(size.value));
  std::copy(rest.begin(), rest.end(), bounce_.begin());
  held_ -= size;
}

Bytes Inbox::take(Rank peer, std::span<std::byte> into) {
  const transport::Transfer transfer = channel_.try_receive(peer, into);
  if (transfer.bytes.value == 0 && transfer.closed) throw PeerClosed{peer};
  came_ += transfer.bytes;
  return transfer.bytes;
}

}  // namespace peal::engine
