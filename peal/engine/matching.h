// Which receive gets which message: receives that wait for their message, and messages that wait
// for their receive. By source and tag, in the order in which they came; nothing overtakes among
// those of one source and tag. The mailbox moves the bytes.
#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <memory_resource>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "peal/engine/mail_frame.h"
#include "peal/engine/ticket.h"

namespace peal::engine {

/// A message's address and shape.
struct Envelope {
  Rank peer = 0;  // where it goes or comes from; kAnySource: of receives only
  Tag tag;
  DType dtype = DType::kU8;
  Elements count;
};

/// Waits for its message, or is being filled.
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

/// A message, or the offer of one, that came before its receive.
struct Arrival {
  Rank from = 0;
  MailFrame frame;
  Payload payload;  // of an eager message
  bool complete = false;
  std::optional<Receive> claimed_by;  // a receive that came while the payload was still coming
};

/// Cost: linear in what waits. Threads: one at a time.
class Matching {
 public:
  using Place = std::pmr::list<Arrival>::iterator;

  /// Waiting messages are allocated from `memory`, which outlives this.
  explicit Matching(std::pmr::memory_resource* memory = std::pmr::get_default_resource())
      : arrivals_(memory) {}

  /// A receive that no message has met.
  void post(Receive receive) { receives_.push_back(std::move(receive)); }
  /// Takes out the first receive that wants a message from `from` with `tag`.
  std::optional<Receive> take(Rank from, Tag tag);
  /// Whether a receive waits that names this source; kAnySource: that takes any.
  bool expects(Rank source) const;

  /// Adds a message that no receive matches, without its payload. Its place stays valid until
  /// `drop`.
  Place keep(Rank from, const MailFrame& frame) {
    Payload payload(arrivals_.get_allocator().resource());
    arrivals_.push_back({from, frame, std::move(payload), false, std::nullopt});
    return std::prev(arrivals_.end());
  }
  /// The first message that is wanted and that no receive has claimed; else `nowhere`.
  Place find(const Envelope& wanted);
  void drop(Place arrival) { arrivals_.erase(arrival); }
  Place nowhere() { return arrivals_.end(); }
  /// Whether a receive has claimed a message of this rank that is still coming.
  bool has_claim_on(Rank from) const;

  void clear();

 private:
  std::vector<Receive> receives_;
  std::pmr::list<Arrival> arrivals_;
};

}  // namespace peal::engine
