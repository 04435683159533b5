#include "peal/transport/faulty/wire.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/net/socket.h"
#include "peal/net/tcp_options.h"
#include "peal/system/fd.h"
#include "peal/system/per_process.h"
#include "peal/system/thread.h"
#include "peal/system/withheld.h"

namespace peal::transport {
namespace {

/// How long the end of a stream waits for the bytes that were sent before it.
constexpr Timeout kLimit{1000};
constexpr std::size_t kMostPerRead = 64 << 10;

struct Pair {
  Fd near;
  Fd far;
};

/// Two ends of a connection over loopback. The near end answers queries about its TCP line, like
/// the connection that it replaces.
Pair make_pair() {
  const Deadline deadline = Deadline::after(kLimit);
  const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
  Pair pair;
  pair.near = net::connect_to(net::local_address(listener.get()), deadline);
  do {  // another process may have connected first
    auto far = net::accept_from(listener.get(), deadline);
    if (!far) throw Error(ErrorKind::kResource, "cannot connect over loopback");
    pair.far = std::move(*far);
  } while (net::peer_address(pair.far.get()) != net::local_address(pair.near.get()));
  for (const Fd* fd : {&pair.near, &pair.far}) net::set_no_delay(fd->get());
  return pair;
}

/// One direction: from one descriptor to another, with faults on the way.
class WireDirection {
 public:
  WireDirection(int from, int to, DirectionFaults faults)
      : from_(from), to_(to), direction_(std::move(faults)) {}

  /// Moves what can be moved now.
  void advance(TimePoint now) {
    if (reads()) read(now);
    if (!is_over_) write(now);
    if (direction_.state() == FaultyDirection::State::kEnded) end();
  }

  bool is_cut() const { return direction_.state() == FaultyDirection::State::kCut; }
  /// Whether the end was passed on, or the receiver takes no more bytes.
  bool is_over() const { return is_over_; }
  bool reads() const { return !has_ended_ && direction_.room() > 0_B; }
  bool writes(TimePoint now) const { return !is_over_ && !direction_.ready(now).empty(); }
  TimePoint next() const {
    return is_over_ ? TimePoint::max() : direction_.ready_at().value_or(TimePoint::max());
  }
  Bytes held() const { return is_over_ ? 0_B : direction_.held(); }

 private:
  void read(TimePoint now) {
    const auto room = static_cast<std::size_t>(direction_.room().value);
    const net::Moved moved =
        net::try_read(from_, std::span(buffer_).first(std::min(buffer_.size(), room)));
    if (moved.closed) {
      has_ended_ = true;
      direction_.end();
    } else if (!is_over_) {  // else the bytes are discarded, so that the sender can go on
      direction_.arrive(std::span(buffer_).first(static_cast<std::size_t>(moved.bytes.value)), now);
    }
  }

  void write(TimePoint now) {
    for (auto bytes = direction_.ready(now); !bytes.empty(); bytes = direction_.ready(now)) {
      const std::array pieces = {bytes};
      const net::Moved moved = net::try_write(to_, pieces);
      if (moved.closed) is_over_ = true;
      if (moved.bytes == 0_B) return;
      direction_.take(moved.bytes, now);
    }
  }

  void end() {
    if (!is_over_) net::end_writing(to_);
    is_over_ = true;
  }

  int from_;
  int to_;
  FaultyDirection direction_;
  bool has_ended_ = false;
  bool is_over_ = false;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kMostPerRead);
};

class Wire final : public net::Stream {
 public:
  Wire(std::unique_ptr<net::Stream> stream, DirectionFaults incoming)
      : stream_(std::move(stream)), stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!stop_) throw system_error("cannot make an eventfd for a faulty link", errno);
    Pair pair = make_pair();
    connection_ = withheld_from_children(Fd(::fcntl(stream_->fd(), F_DUPFD_CLOEXEC, 0)));
    if (!connection_ || ::dup3(pair.near.get(), stream_->fd(), O_CLOEXEC) < 0) {
      throw system_error("cannot duplicate the descriptor of a faulty link", errno);
    }
    withhold_from_children(stream_->fd());
    far_ = std::move(pair.far);
    ways_.with([&](Ways& ways) {
      ways.out.emplace(far_.get(), connection_.get(), DirectionFaults());
      ways.in.emplace(connection_.get(), far_.get(), std::move(incoming));
    });
    thread_ = start_thread([this] { work(); });
  }

  ~Wire() override { stop(); }

  net::Moved try_write(std::span<const std::span<const std::byte>> pieces) override {
    return stream_->try_write(pieces);
  }
  net::Moved try_read(std::span<std::byte> into) override { return stream_->try_read(into); }
  bool try_flush() override { return stream_->try_flush(); }
  bool has_unsent() const noexcept override { return stream_->has_unsent(); }
  bool has_read_ahead() const noexcept override { return stream_->has_read_ahead(); }
  int fd() const noexcept override { return stream_->fd(); }

  /// Sums up in the order in which the bytes pass, so that none is missed.
  Bytes unacknowledged() const override {
    const Bytes before = stream_->unacknowledged();
    return ways_.with([&](const Ways& ways) {
      const Bytes here = net::unread(far_.get()) + ways.out->held();
      return before + here + net::unacknowledged(connection_.get());
    });
  }

  Fd release() noexcept override {
    net::hang_up(stream_->release());
    ways_.wait(
        Deadline::after(kLimit),
        [](const Ways& ways) { return ways.are_over || ways.out->is_over(); },
        [](const Ways&) {});
    stop();
    return std::move(connection_);
  }

 private:
  struct Ways {
    std::optional<WireDirection> out;  // the bytes that are sent
    std::optional<WireDirection> in;
    bool are_over = false;  // the thread has ended
  };

  void stop() noexcept {
    if (!owner_.is_current()) return leave_to_parent(std::move(thread_));
    if (!thread_.joinable()) return;
    ::eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  void work() {
    try {
      while (pass()) {
      }
    } catch (const std::exception&) {  // the connection cannot be used any more
      cut();
    }
    ways_.update([](Ways& ways) { ways.are_over = true; });
  }

  /// Moves the bytes that are ready, and sleeps until there are more. Returns whether more may
  /// come.
  bool pass() {
    enum { kFar, kConnection, kStop };
    std::array<pollfd, 3> entries = {
        pollfd{far_.get(), 0, 0}, pollfd{connection_.get(), 0, 0}, pollfd{stop_.get(), POLLIN, 0}};
    TimePoint next = TimePoint::max();
    const bool goes_on = ways_.update([&](Ways& ways) {
      const TimePoint now = Clock::now();
      ways.out->advance(now);
      ways.in->advance(now);
      if (ways.in->is_cut()) return false;
      const auto watch = [&](const WireDirection& way, pollfd& from, pollfd& to) {
        if (way.reads()) from.events |= POLLIN;
        if (way.writes(now)) {
          to.events |= POLLOUT;
        } else {
          next = std::min(next, way.next());
        }
      };
      watch(*ways.out, entries[kFar], entries[kConnection]);
      watch(*ways.in, entries[kConnection], entries[kFar]);
      return true;
    });
    if (!goes_on) {
      cut();
      return false;
    }
    for (pollfd& entry : entries) {
      if (entry.events == 0) entry.fd = -1;  // else poll would report its end again and again
    }
    net::poll_until(entries, Deadline(next));
    return entries[kStop].revents == 0;
  }

  void cut() noexcept {
    net::cut_off(connection_.get());
    net::cut_off(far_.get());
  }

  const OwnerProcess owner_;
  std::unique_ptr<net::Stream> stream_;
  Fd stop_;
  Fd connection_;
  Fd far_;
  mutable Guarded<Ways> ways_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<net::Stream> with_faults(std::unique_ptr<net::Stream> stream,
                                         DirectionFaults incoming) {
  return std::make_unique<Wire>(std::move(stream), std::move(incoming));
}

}  // namespace peal::transport
