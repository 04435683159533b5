#include "peal/transport/ring_channel.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/transport/futex.h"
#include "peal/transport/presence.h"

namespace peal::transport {
namespace {

/// A thread that polls a stream without progress asks the system once in so many calls whether the
/// peer lives: the question costs as much as a hundred empty looks.
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
  if (!owner_.is_current()) return;  // the rings are the parent's
  for (const auto& peer : peers_) {
    if (!peer) continue;
    peer->out.leave();
    peer->in.leave();
    peer->bell->ring();
  }
}

void RingChannel::refuse(Rank rank) {
  throw Error(ErrorKind::kUsage, fmt::format("there is no stream to rank {}", rank));
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
  // Whether it writes is asked first: what it wrote before it left is found after that.
  const bool writing = from.is_writing();
  const auto [moved, told] = from.in.read(into);
  if (told) from.bell->ring_if_asleep();
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

/// A futex does not report the end of a process. Hence the check for processes that have ended.
void RingChannel::wait_by_futex(std::span<const Interest> interests, Deadline deadline) {
  const std::uint32_t lain_down = own_->lie_down();  // before the look around: see Doorbell
  if (!interrupted_.load() && !is_any_ready(interests)) {
    own_->sleep(lain_down, deadline.within(kLongestSleep));
  }
  own_->get_up();
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
  own_->lie_down();                    // before the look around: see Doorbell
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
  own_->get_up();
  interrupted_.store(false);
  if (entries[0].revents != 0) own_->event()->hush();
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    if (entries[i + 1].revents != 0) watched_[i]->process->note_end();
  }
}

bool RingChannel::lie_down(std::span<const Interest> interests) {
  lain_down_for_.assign(interests.begin(), interests.end());
  if (!interests.empty()) own_->lie_down();  // before the look around: see Doorbell
  return !interrupted_.load() && !is_any_ready(interests);
}

bool RingChannel::may_go_on() {
  const bool was_rung = !lain_down_for_.empty() && own_->was_rung();
  return was_rung || interrupted_.load() || is_any_ready(lain_down_for_);
}

void RingChannel::get_up() {
  own_->get_up();
  interrupted_.store(false);
}

}  // namespace peal::transport
