// Matches receives with messages: holds receives that wait for their message, and messages that
// wait for their receive (in MPI: the posted-receive queue and the unexpected-message queue).
// Matching is by source and tag, in order of arrival. Messages of one source and tag never overtake
// each other. The mailbox moves the bytes.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <memory_resource>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "peal/mail/frame.h"
#include "peal/mail/ticket.h"

namespace peal::mail {

/// A message's address and shape.
struct Envelope {
  Rank peer = 0;  // the destination or the source; kAnySource for receives only
  Tag tag;
  DType dtype = DType::kU8;
  Elements count;
};

/// A receive that waits for its message or is being filled.
struct Receive {
  TicketPtr ticket;
  Envelope envelope;
  std::byte* data = nullptr;
  Bytes have;

  Bytes size() const { return bytes_of(envelope.count, envelope.dtype); }
};

/// The bytes of a kept message. A vector would write each byte before the payload arrives.
class Payload {
 public:
  explicit Payload(std::pmr::memory_resource* memory) : memory_(memory) {}
  Payload(Payload&& other) noexcept
      : memory_(other.memory_), bytes_(std::exchange(other.bytes_, {})) {}
  Payload& operator=(Payload&&) = delete;
  ~Payload() {
    if (bytes_.data() != nullptr) memory_->deallocate(bytes_.data(), bytes_.size(), kAlignment);
  }

  /// Makes room for `size` bytes, which the caller writes. Call it once.
  std::span<std::byte> make_room(std::size_t size) {
    if (size > 0) bytes_ = {static_cast<std::byte*>(memory_->allocate(size, kAlignment)), size};
    return bytes_;
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kAlignment = 16;

  std::pmr::memory_resource* memory_;
  std::span<std::byte> bytes_;
};

/// A message or an offer that came before its receive.
struct Arrival {
  Rank from = 0;
  Frame frame;
  Payload payload;  // of a small message
  bool complete = false;
  std::optional<Receive> claimed_by;  // a receive that came while the payload was arriving
};

/// Cost: linear in the number of waiting receives and messages. Threads: one at a time.
class Matching {
 public:
  using Position = std::pmr::list<Arrival>::iterator;

  /// Waiting messages are allocated from `memory`, which must outlive this object.
  explicit Matching(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : arrivals_(memory) {}

  /// Adds a receive that matches no waiting message.
  void post(Receive receive) { receives_.push_back(std::move(receive)); }
  /// Removes and returns the first receive for a message from `from` with `tag`.
  std::optional<Receive> take(Rank from, Tag tag);
  /// Whether a receive from this source waits; kAnySource: a receive from any source.
  bool expects(Rank source) const;

  /// Adds a message that matches no waiting receive, without its payload. Its place is valid until
  /// `drop`.
  Position keep(Rank from, const Frame& frame) {
    Payload payload(arrivals_.get_allocator().resource());
    arrivals_.push_back({from, frame, std::move(payload), false, std::nullopt});
    return std::prev(arrivals_.end());
  }
  /// The first matching message that no receive has claimed; otherwise `nowhere`.
  Position find(const Envelope& wanted);
  void drop(Position arrival) { arrivals_.erase(arrival); }
  Position nowhere() { return arrivals_.end(); }
  /// Whether a receive has claimed a message of this rank that is still arriving.
  bool has_claim_on(Rank from) const;

  void clear();

 private:
  std::vector<Receive> receives_;
  std::pmr::list<Arrival> arrivals_;
};

}  // namespace peal::mail
