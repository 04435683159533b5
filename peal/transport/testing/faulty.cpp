#include "peal/transport/testing/faulty.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "peal/base/guarded.h"
#include "peal/transport/shm/mail_thread.h"

namespace peal::transport {
namespace {

using Direction = StreamFault::Direction;

/// The part of one transfer that the faults allow.
struct Allowed {
  std::size_t bytes = 0;
  bool closed = false;
};

/// The faults of one channel, as a state that every call advances.
class Script {
 public:
  Script(const Faults& faults, ChannelKind channel) : faults_(faults), random_(faults.seed) {
    std::erase_if(faults_.streams, [&](const StreamFault& f) { return f.channel != channel; });
  }

  /// How many of `wanted` bytes may move now.
  Allowed allow(Rank peer, Direction direction, std::size_t wanted) {
    if (is_cut(peer)) return {0, true};
    Stream& stream = streams_[{peer, direction}];
    if (stream.idle > 0) {
      --stream.idle;
      return {};
    }
    if (faults_.most_per_call > 0_B) {
      const auto most = static_cast<std::size_t>(faults_.most_per_call.value);
      wanted = std::min(wanted, 1 + random_() % most);
    }
    if (const StreamFault* cut = fault(StreamFault::Kind::kCut, peer, direction)) {
      wanted = std::min(wanted, static_cast<std::size_t>((cut->after - stream.moved).value));
    }
    return {wanted, false};
  }

  void moved(Rank peer, Direction direction, Bytes bytes) {
    if (bytes == 0_B) return;
    Stream& stream = streams_[{peer, direction}];
    stream.moved += bytes;
    stream.idle = faults_.idle_calls;
  }

  /// The position of the corrupt byte in the next bytes of the stream, if any.
  std::optional<std::size_t> corrupt_at(Rank peer, Direction direction) const {
    const StreamFault* corrupt = fault(StreamFault::Kind::kCorrupt, peer, direction);
    if (!corrupt || corrupt->after < moved_in(peer, direction)) return std::nullopt;
    return static_cast<std::size_t>((corrupt->after - moved_in(peer, direction)).value);
  }

  /// How many sent bytes are never acknowledged.
  Bytes never_acknowledged(Rank peer) const {
    const auto* const mute = fault(StreamFault::Kind::kUnacknowledged, peer, Direction::kSending);
    return mute == nullptr ? 0_B : std::max(0_B, moved_in(peer, Direction::kSending) - mute->after);
  }

  /// Whether a wait for `interest` must not sleep, because only the script knows that it is ready.
  bool is_awake(const Interest& interest) const {
    const Direction direction =
        interest.readiness == Readiness::kReadable ? Direction::kReceiving : Direction::kSending;
    const auto stream = streams_.find({interest.peer, direction});
    return is_cut(interest.peer) || (stream != streams_.end() && stream->second.idle > 0);
  }

  bool wakes_for_nothing() {
    return faults_.wakeups == Faults::Wakeups::kSpurious && random_() % 2 == 0;
  }

 private:
  struct Stream {
    Bytes moved;
    int idle = 0;
  };

  Bytes moved_in(Rank peer, Direction direction) const {
    const auto found = streams_.find({peer, direction});
    return found == streams_.end() ? 0_B : found->second.moved;
  }

  const StreamFault* fault(StreamFault::Kind kind, Rank peer, Direction direction) const {
    const auto found = std::ranges::find_if(faults_.streams, [&](const StreamFault& f) {
      return f.kind == kind && f.peer == peer && f.direction == direction;
    });
    return found == faults_.streams.end() ? nullptr : &*found;
  }

  bool is_cut(Rank peer) const {
    return std::ranges::any_of(faults_.streams, [&](const StreamFault& f) {
      return f.kind == StreamFault::Kind::kCut && f.peer == peer &&
             moved_in(peer, f.direction) >= f.after;
    });
  }

  Faults faults_;
  std::mt19937 random_;
  std::map<std::pair<Rank, Direction>, Stream> streams_;
};

class FaultyChannel final : public Channel {
 public:
  FaultyChannel(Channel& inner, const Faults& faults, ChannelKind kind)
      : inner_(inner), script_(faults, kind) {}

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override {
    const auto [allowed, corrupt] = ask(peer, Direction::kSending, size_of(pieces));
    if (allowed.closed) return {0_B, true};
    std::vector<std::byte> bytes = leading(pieces, allowed.bytes);
    if (corrupt && *corrupt < bytes.size()) bytes[*corrupt] ^= std::byte{0xff};
    const ConstPiece piece(bytes);
    return record(peer, Direction::kSending, inner_.try_send(peer, {&piece, 1}));
  }

  Transfer try_receive(Rank peer, std::span<std::byte> into) override {
    const auto [allowed, corrupt] = ask(peer, Direction::kReceiving, into.size());
    if (allowed.closed) return {0_B, true};
    const Transfer transfer = inner_.try_receive(peer, into.first(allowed.bytes));
    if (corrupt && static_cast<std::int64_t>(*corrupt) < transfer.bytes.value) {
      into[*corrupt] ^= std::byte{0xff};
    }
    return record(peer, Direction::kReceiving, transfer);
  }

  bool try_flush(Rank peer) override { return inner_.try_flush(peer); }

  LinkState link_state(Rank peer) const override { return inner_.link_state(peer); }

  Bytes unacknowledged(Rank peer) const override {
    const Bytes mute =
        script_.with([&](const Script& script) { return script.never_acknowledged(peer); });
    return std::max(mute, inner_.unacknowledged(peer));
  }

  void wait(std::span<const Interest> interests, Deadline deadline) override {
    const bool awake = script_.with([&](Script& script) {
      return script.wakes_for_nothing() ||
             std::ranges::any_of(interests, [&](const auto& i) { return script.is_awake(i); });
    });
    if (awake) {
      std::this_thread::yield();
    } else {
      inner_.wait(interests, deadline);
    }
  }

  void interrupt() noexcept override { inner_.interrupt(); }

 private:
  static std::size_t size_of(std::span<const ConstPiece> pieces) {
    std::size_t size = 0;
    for (const ConstPiece& piece : pieces) size += piece.size();
    return size;
  }

  /// The first `size` bytes of the concatenated pieces.
  static std::vector<std::byte> leading(std::span<const ConstPiece> pieces, std::size_t size) {
    std::vector<std::byte> bytes;
    for (const ConstPiece& piece : pieces) {
      const ConstPiece part = piece.first(std::min(piece.size(), size - bytes.size()));
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }

  std::pair<Allowed, std::optional<std::size_t>> ask(Rank peer,
                                                     Direction direction,
                                                     std::size_t wanted) {
    return script_.with([&](Script& script) {
      return std::pair(script.allow(peer, direction, wanted), script.corrupt_at(peer, direction));
    });
  }

  Transfer record(Rank peer, Direction direction, Transfer transfer) {
    script_.with([&](Script& script) { script.moved(peer, direction, transfer.bytes); });
    return transfer;
  }

  Channel& inner_;
  mutable Guarded<Script> script_;
};

class FaultyTransport final : public Transport {
 public:
  FaultyTransport(std::unique_ptr<Transport> inner, const Faults& faults)
      : inner_(std::move(inner)),
        data_(inner_->data(), faults, ChannelKind::kData),
        mail_(inner_->mail(), faults, ChannelKind::kMail) {}

  Channel& data() override { return data_; }
  Channel& mail() override { return mail_; }
  /// Empty: the shared thread would wait for the mail without faults.
  std::optional<SharedMail> shared_mail() override { return std::nullopt; }
  Window* window() override { return inner_->window(); }
  void stop_linking() override { inner_->stop_linking(); }
  int ranks_on_host() const override { return inner_->ranks_on_host(); }
  int cpus_on_host() const override { return inner_->cpus_on_host(); }
  std::string describe(Rank peer) const override { return "faulty " + inner_->describe(peer); }
  std::string host(Rank peer) const override { return inner_->host(peer); }
  Presence presence(Rank peer) const override { return inner_->presence(peer); }

 private:
  std::unique_ptr<Transport> inner_;
  FaultyChannel data_;
  FaultyChannel mail_;
};

}  // namespace

std::unique_ptr<Transport> make_faulty(std::unique_ptr<Transport> inner, const Faults& faults) {
  return std::make_unique<FaultyTransport>(std::move(inner), faults);
}

}  // namespace peal::transport
