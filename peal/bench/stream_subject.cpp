#include "peal/bench/stream_subject.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/thread.h"
#include "peal/bench/sizes.h"
#include "peal/net/line.h"
#include "peal/net/socket.h"

namespace peal::bench {
namespace {

/// Free in a namespace that has just been made.
constexpr std::uint16_t kPort = 47000;
constexpr Bytes kRoundTrips = 256_B;
/// Two threads were seen to win from 64 MiB on, and to lose up to 4 MiB.
constexpr Bytes kTwoThreads = 4_MiB;

/// What is still to be sent, and to be received.
struct Left {
  std::span<const std::byte> out = {};
  std::span<std::byte> in = {};
  bool is_done() const { return out.empty() && in.empty(); }
};

/// What a call that moves bytes has moved. Throws where it says that the peer is not to be had any
/// more.
std::size_t moved(ssize_t count, int fd, std::string_view doing) {
  if (count >= 0) return static_cast<std::size_t>(count);
  const int error = errno;
  if (error == EAGAIN || error == EINTR) return 0;
  throw Error(ErrorKind::kPeerLost,
              fmt::format("the bare stream has ended while {} {}: {}",
                          doing,
                          net::peer_name(fd),
                          std::generic_category().message(error)));
}

/// Sends what the socket takes; whether that is anything. Not by net::try_write, since sendmsg(2)
/// was seen to make a round trip of 4 bytes some 0.4 us longer (of 11): this is a floor.
bool send_some(int fd, Left& left) {
  if (left.out.empty()) return false;
  const ssize_t count = ::send(fd, left.out.data(), left.out.size(), MSG_NOSIGNAL);
  const std::size_t sent = moved(count, fd, "sending to");
  left.out = left.out.subspan(sent);
  return sent > 0;
}

bool receive_some(int fd, Left& left) {
  if (left.in.empty()) return false;
  const ssize_t count = ::read(fd, left.in.data(), left.in.size());
  if (count == 0) {
    throw Error(ErrorKind::kPeerLost,
                fmt::format("the bare stream from {} has ended", net::peer_name(fd)));
  }
  const std::size_t received = moved(count, fd, "receiving from");
  left.in = left.in.subspan(received);
  return received > 0;
}

/// How a thread waits for the sockets.
struct Manner {
  Waiting waiting = Waiting::kSpin;
  Timeout patience{};  // while nothing moves
};

/// Sends all of it to one and receives all of it from the other, on the calling thread: looks again
/// and again for a while where it has a core of its own, then sleeps until there is something to
/// do. A peer that is gone ends it, and so does one that stands still.
void exchange(int to, int from, const Manner& manner, Left left) {
  const int looks = manner.waiting == Waiting::kSpin ? 1000 : 1;
  int in_vain = 0;
  while (!left.is_done()) {
    const bool sent = send_some(to, left);
    const bool received = receive_some(from, left);
    in_vain = sent || received ? 0 : in_vain + 1;
    if (in_vain < looks) continue;
    std::array entries = {pollfd{left.out.empty() ? -1 : to, POLLOUT, 0},
                          pollfd{left.in.empty() ? -1 : from, POLLIN, 0}};
    if (net::poll_until(entries, Deadline::after(manner.patience))) continue;
    throw Error(ErrorKind::kTimeout,
                fmt::format("the bare stream stands still: {} bytes are still to go to {}, {} to "
                            "come from {}",
                            left.out.size(),
                            net::peer_name(to),
                            left.in.size(),
                            net::peer_name(from)));
  }
}

/// Sends on a thread of its own while the caller receives.
class Sender final {
 public:
  Sender(int fd, const Manner& manner)
      : fd_(fd), manner_(manner), thread_(start_thread([this] { work(); })) {}
  /// Gives up what is being sent, and the connection with it: its other end cannot tell what is
  /// missing.
  ~Sender() {
    const bool is_sending = state_.update([](State& state) {
      state.has_ended = true;
      return state.data.has_value();
    });
    if (is_sending) net::end_writing(fd_);  // wakes the thread
    thread_.join();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  /// `data` stays as it is until `wait` has returned, or this has ended. Throws what went wrong
  /// before.
  void start(std::span<const std::byte> data) {
    wait();
    state_.update([&](State& state) { state.data = data; });
  }
  /// Returns when it has been sent. Throws what went wrong.
  void wait() {
    std::optional<Error> error;
    const bool has_come = state_.wait(
        Deadline::after(manner_.patience),
        [](const State& state) { return !state.data.has_value(); },
        [&](const State& state) { error = state.error; });
    if (error) throw *error;
    if (has_come) return;
    throw Error(ErrorKind::kTimeout,
                fmt::format("the bare stream takes too long to send to {}", net::peer_name(fd_)));
  }

 private:
  using Data = std::optional<std::span<const std::byte>>;
  struct State {
    Data data = {};                   // to be sent, or being sent
    std::optional<Error> error = {};  // the first one
    bool has_ended = false;
  };

  void work() {
    while (const Data data = next()) {
      std::optional<Error> error;
      try {
        exchange(fd_, fd_, manner_, {.out = *data});
      } catch (const std::exception&) {
        error = current_error("the bare stream's sender");
      }
      state_.update([&](State& state) {
        state.data.reset();
        if (error) state.error = error;
      });
    }
  }
  /// Nothing at the end. Waits without a deadline: between trials there is nothing to send.
  Data next() {
    Data data;
    state_.wait(
        Deadline(TimePoint::max()),
        [](const State& state) { return state.has_ended || state.data.has_value(); },
        [&](const State& state) {
          if (!state.has_ended) data = state.data;
        });
    return data;
  }

  int fd_;
  Manner manner_;
  Guarded<State> state_;
  std::thread thread_;
};

/// This host's connections: to the next host, and from the one before; of two hosts they are one.
struct Links {
  Fd next, previous;
  int to_next() const { return next.get(); }
  int from_previous() const { return previous ? previous.get() : next.get(); }
};

Links connect(const std::vector<std::string>& addresses, Rank host) {
  const Deadline deadline = Deadline::after(kStreamPatience);
  const auto address_of = [&](Rank h) {
    const auto index = static_cast<std::size_t>(h) % addresses.size();
    return net::Address::parse(fmt::format("{}:{}", addresses[index], kPort));
  };
  const auto accept = [&](int listener) {
    auto accepted = net::accept_from(listener, deadline);
    if (!accepted) throw Error(ErrorKind::kTimeout, "the host before did not connect its stream");
    return std::move(*accepted);
  };
  const Fd listener = net::listen_on(address_of(host));
  Links links;
  const bool two_hosts = addresses.size() == 2;
  if (two_hosts && host == 1) {
    links.next = accept(listener.get());
    return links;
  }
  links.next = net::connect_patiently({address_of(host + 1)}, deadline);
  if (!two_hosts) links.previous = accept(listener.get());
  return links;
}

/// A thread for each way costs more than it gains where little is sent.
enum class Threads : unsigned char { kOne, kTwo };

/// What a host sends, and where it receives.
struct StreamBuffers {
  explicit StreamBuffers(Bytes size)
      : out(static_cast<std::size_t>(size.value), std::byte{1}), in(out.size()) {}
  Bytes size() const { return Bytes(out.size()); }
  std::vector<std::byte> out, in;
};

class TwoWay final : public Trial {
 public:
  TwoWay(const Links& links,
         const Manner& manner,
         Threads threads,
         std::shared_ptr<StreamBuffers> buffers)
      : links_(links), manner_(manner), buffers_(std::move(buffers)) {
    if (threads == Threads::kTwo) sender_.emplace(links.to_next(), manner);
  }
  std::span<std::byte> input() override { return {}; }
  std::span<std::byte> output() override { return {}; }
  void run() override {
    const int from = links_.from_previous();
    auto& [out, in] = *buffers_;
    if (!sender_) return exchange(links_.to_next(), from, manner_, {.out = out, .in = in});
    sender_->start(out);
    exchange(from, from, manner_, {.in = in});
    sender_->wait();
  }

 private:
  const Links& links_;
  Manner manner_;
  std::shared_ptr<StreamBuffers> buffers_;
  std::optional<Sender> sender_;
};

/// Between two hosts.
class RoundTrip final : public Trial {
 public:
  RoundTrip(const Links& links, const Manner& manner, Rank host, Bytes size)
      : links_(links), manner_(manner), host_(host), data_(static_cast<std::size_t>(size.value)) {}
  std::span<std::byte> input() override { return {}; }
  std::span<std::byte> output() override { return {}; }
  void run() override {
    const int peer = links_.to_next();
    if (host_ == 0) exchange(peer, peer, manner_, {.out = data_});
    exchange(peer, peer, manner_, {.in = data_});
    if (host_ == 1) exchange(peer, peer, manner_, {.out = data_});
  }

 private:
  const Links& links_;
  Manner manner_;
  Rank host_;
  std::vector<std::byte> data_;
};

class StreamSubject final : public Subject {
 public:
  StreamSubject(const std::string& addresses, Rank host, const Manner& manner)
      : host_(host),
        manner_(manner),
        addresses_(parse_list("addresses", addresses)),
        links_(connect(addresses_, host)) {
    const std::string congestion = config_from(process_environment()).congestion;
    for (const int fd : {links_.to_next(), links_.from_previous()}) {
      net::set_no_delay(fd);
      if (!congestion.empty()) net::set_congestion_control(fd, congestion);
    }
  }

  std::string note() const override {
    return "bare TCP, congestion control " + net::congestion_control(links_.to_next());
  }
  bool can(const Case& c, const std::string& variant) const override {
    const Bytes sent = bytes_between_hosts(c, hosts());
    if (sent == 0_B) return false;
    const bool is_small = bytes_of(c) <= kRoundTrips;
    // Of more hosts a round trip is no measure: who waits for no message is faster.
    if (variant == "round-trip") return is_small && hosts() == 2;
    if (variant == "two-threads") return sent >= kTwoThreads;
    return !is_small;
  }
  std::unique_ptr<Trial> prepare(const Case& c, const std::string& variant) override {
    if (variant == "round-trip") {
      return std::make_unique<RoundTrip>(links_, manner_, host_, bytes_of(c));
    }
    const Threads threads = variant == "two-threads" ? Threads::kTwo : Threads::kOne;
    return std::make_unique<TwoWay>(
        links_, manner_, threads, shared_buffers(bytes_between_hosts(c, hosts())));
  }

 private:
  int hosts() const { return static_cast<int>(addresses_.size()); }

  /// The trials of a case are prepared together and run in turn, so they share one pair, which goes
  /// with the last of them: a case without a stream takes none. `holders_of` (bench.cpp) counts so.
  std::shared_ptr<StreamBuffers> shared_buffers(Bytes size) {
    std::shared_ptr<StreamBuffers> buffers = buffers_.lock();
    if (!buffers || buffers->size() != size) buffers = std::make_shared<StreamBuffers>(size);
    buffers_ = buffers;
    return buffers;
  }

  Rank host_;
  Manner manner_;
  std::vector<std::string> addresses_;
  Links links_;
  std::weak_ptr<StreamBuffers> buffers_;
};

}  // namespace

Bytes bytes_between_hosts(const Case& c, int hosts) {
  const Bytes whole = bytes_of(c);
  switch (c.op) {
    case Op::kAllReduce:
      return whole * (2 * (hosts - 1)) / hosts;
    case Op::kReduceScatter:
    case Op::kAllGather:
      return whole * (hosts - 1) / hosts;
    case Op::kAllToAll:
      return whole * (c.ranks / hosts) * (hosts - 1) / hosts;
    case Op::kBroadcast:
    case Op::kReduce:
    case Op::kGather:
    case Op::kScatter:
    case Op::kSendRecv:
    case Op::kBarrier:
      return 0_B;
  }
  return 0_B;
}

std::unique_ptr<Subject> make_stream_subject(const std::string& addresses,
                                             Rank host,
                                             Waiting waiting,
                                             Timeout patience) {
  return std::make_unique<StreamSubject>(addresses, host, Manner{waiting, patience});
}

}  // namespace peal::bench
