#include "peal/transport/shm/ring_channel.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/transport/liveness/presence.h"
#include "peal/transport/window/futex.h"

namespace peal::transport {
namespace {

/// A thread that polls a stream without progress asks the system only once in this many calls
/// whether the peer lives: the question costs as much as a hundred empty polls.
constexpr std::uint32_t kCallsPerLook = 1024;

}  // namespace

struct RingChannel::Peer {
  explicit Peer(const RingLink& link)
      : out(link.outgoing), in(link.incoming), bell(link.bell), process(link.process) {}

  bool is_gone() const { return process && process->is_known_to_have_ended(); }
  bool is_reading() const { return !out.reader_left() && !is_gone(); }
  bool is_writing() const { return !in.writer_left() && !is_gone(); }
  bool is_ready(Readiness readiness) const {
    return readiness == Readiness::kReadable ? in.has_data() || !is_writing()
                                             : out.has_space() || !is_reading();
  }
  /// Called when nothing moves.
  void look_for_death() {
    if (process && ++idle % kCallsPerLook == 0) process->has_ended();
  }

  RingWriter out;
  RingReader in;
  std::shared_ptr<Doorbell> bell;
  std::shared_ptr<PeerProcess> process;
  std::uint32_t idle = 0;
};

RingChannel::RingChannel(std::shared_ptr<Doorbell> own, const std::vector<RingLink>& links)
    : own_(std::move(own)) {
  for (const RingLink& link : links) {
    const auto rank = static_cast<std::size_t>(link.incoming.peer);
    if (peers_.size() <= rank) peers_.resize(rank + 1);
    peers_[rank] = std::make_unique<Peer>(link);
  }
}

RingChannel::~RingChannel() {
  if (!owner_.is_current()) return;  // the rings belong to the parent
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->out.leave();
    peer->in.leave();
    peer->bell->ring();
  }
}

void RingChannel::refuse(Rank rank) {
  throw Error(ErrorKind::kUsage, fmt::format("this channel has no stream to rank {}", rank));
}

Transfer RingChannel::try_send(Rank rank, std::span<const ConstPiece> pieces) {
  Peer& to = peer(rank);
  if (!to.is_reading()) return {0_B, true};
  const Bytes moved = to.out.write(pieces);
  if (moved > 0_B) {
    to.bell->ring_if_asleep();
  } else {
    to.look_for_death();
  }
  return {moved, false};
}

Transfer RingChannel::try_receive(Rank rank, std::span<std::byte> into) {
  Peer& from = peer(rank);
  // Read the flag before the ring: bytes that the peer wrote before it left are then found.
  const bool writing = from.is_writing();
  const auto [moved, published] = from.in.read(into);
  if (published) from.bell->ring_if_asleep();
  if (moved > 0_B) return {moved, false};
  from.look_for_death();
  return {0_B, !writing && !from.in.has_data()};
}

bool RingChannel::is_any_ready(std::span<const Interest> interests) const {
  return std::ranges::any_of(interests, [this](const Interest& interest) {
    return peer(interest.peer).is_ready(interest.readiness);
  });
}

void RingChannel::wait(std::span<const Interest> interests, Deadline deadline) {
  if (own_->event() != nullptr) return wait_by_poll(*this, interests, deadline, entries_);
  wait_by_futex(interests, deadline);
}

/// A futex does not report the end of a process. So this function also checks whether a process has
/// ended.
void RingChannel::wait_by_futex(std::span<const Interest> interests, Deadline deadline) {
  const std::uint32_t announced =
      own_->announce_sleep();  // before the check for work: see Doorbell
  if (!interrupted_.load() && !is_any_ready(interests)) {
    own_->sleep(announced, deadline.within(kLongestSleep));
  }
  own_->end_sleep();
  interrupted_.store(false);
  if (is_any_ready(interests)) return;
  for (const Interest& interest : interests) {
    if (const auto& process = peer(interest.peer).process) process->has_ended();
  }
}

bool RingChannel::prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) {
  watched_.clear();
  entries.push_back({own_->event()->fd(), POLLIN, 0});
  if (interests.empty()) return true;  // only `interrupt` ends this sleep
  own_->announce_sleep();              // before the check for work: see Doorbell
  for (const Interest& interest : interests) {
    Peer& other = peer(interest.peer);
    if (other.is_ready(interest.readiness)) return false;
    if (!other.process) continue;
    entries.push_back({other.process->sign(), kProcessEnds, 0});
    watched_.push_back(&other);
  }
  return true;
}

void RingChannel::finish(std::span<const pollfd> entries) {
  own_->end_sleep();
  interrupted_.store(false);
  if (entries[0].revents != 0) own_->event()->reset_count();
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    if (entries[i + 1].revents != 0) watched_[i]->process->note_end();
  }
}

bool RingChannel::announce_sleep(std::span<const Interest> interests) {
  sleep_interests_.assign(interests.begin(), interests.end());
  if (!interests.empty()) own_->announce_sleep();  // before the check for work: see Doorbell
  return !interrupted_.load() && !is_any_ready(interests);
}

bool RingChannel::should_wake() {
  const bool check_rung = !sleep_interests_.empty() && own_->check_rung();
  return check_rung || interrupted_.load() || is_any_ready(sleep_interests_);
}

void RingChannel::end_sleep() {
  own_->end_sleep();
  interrupted_.store(false);
}

}  // namespace peal::transport
