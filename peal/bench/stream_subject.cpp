#include "peal/bench/stream_subject.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <exception>
#include <future>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/bench/sizes.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/net/socket.h"
#include "peal/net/tcp_options.h"
#include "peal/system/task_thread.h"

namespace peal::bench {
namespace {

/// The port is free in a new namespace.
constexpr std::uint16_t kPort = 47000;
constexpr Bytes kRoundTrips = 256_B;
/// In measurements two threads were faster from 64 MiB on, and slower up to 4 MiB.
constexpr Bytes kTwoThreads = 4_MiB;

/// The data that is still to be sent and received.
struct Left {
  std::span<const std::byte> out = {};
  std::span<std::byte> in = {};
  bool is_done() const { return out.empty() && in.empty(); }
};

/// The number of bytes that a call has moved. Throws if the call reports that the peer is lost.
std::size_t moved(ssize_t count, int fd, std::string_view doing) {
  if (count >= 0) return static_cast<std::size_t>(count);
  const int error = errno;
  if (error == EAGAIN || error == EINTR) return 0;
  throw Error(ErrorKind::kPeerLost,
              fmt::format("the bare stream failed while {} {}: {}",
                          doing,
                          net::peer_name(fd),
                          std::generic_category().message(error)));
}

/// Sends as much as the socket accepts; returns whether it sent any byte. Does not use
/// net::try_write: sendmsg(2) made a round trip of 4 bytes about 0.4 us longer (of 11), and this is
/// a floor.
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
                fmt::format("{} has closed the bare stream", net::peer_name(fd)));
  }
  const std::size_t received = moved(count, fd, "receiving from");
  left.in = left.in.subspan(received);
  return received > 0;
}

/// How a thread waits for the sockets.
struct Manner {
  Waiting waiting = Waiting::kSpin;
  Timeout timeout{};  // the longest time without progress
};

/// Sends all data to one socket and receives all data from the other, on the calling thread. With
/// its own core the thread polls for a while, then sleeps until a socket is ready. Fails if a peer
/// has ended or makes no progress.
void exchange(int to, int from, const Manner& manner, Left left) {
  const int looks = manner.waiting == Waiting::kSpin ? 1000 : 1;
  int idle_looks = 0;
  while (!left.is_done()) {
    const bool sent = send_some(to, left);
    const bool received = receive_some(from, left);
    idle_looks = sent || received ? 0 : idle_looks + 1;
    if (idle_looks < looks) continue;
    std::array entries = {pollfd{left.out.empty() ? -1 : to, POLLOUT, 0},
                          pollfd{left.in.empty() ? -1 : from, POLLIN, 0}};
    if (net::poll_until(entries, Deadline::after(manner.timeout))) continue;
    throw Error(ErrorKind::kTimeout,
                fmt::format("the bare stream makes no progress: {} bytes are still to be sent to "
                            "{}, {} to be received from {}",
                            left.out.size(),
                            net::peer_name(to),
                            left.in.size(),
                            net::peer_name(from)));
  }
}

/// This host's connections: to the next host, and from the previous host. Two hosts have a single
/// connection.
struct Links {
  Fd next, previous;
  int to_next() const { return next.get(); }
  int from_previous() const { return previous ? previous.get() : next.get(); }
};

Links connect(const std::vector<std::string>& addresses, Rank host) {
  const Deadline deadline = Deadline::after(kStreamTimeout);
  const auto address_of = [&](Rank h) {
    const auto index = static_cast<std::size_t>(h) % addresses.size();
    return net::Address::parse(fmt::format("{}:{}", addresses[index], kPort));
  };
  const auto accept = [&](int listener) {
    auto accepted = net::accept_from(listener, deadline);
    if (!accepted) throw Error(ErrorKind::kTimeout, "the previous host did not connect in time");
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

/// A thread for each direction costs more than it gains for small sizes.
enum class Threads : unsigned char { kOne, kTwo };

/// The buffers of a host, for sending and receiving.
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
      : links_(links), manner_(manner), threads_(threads), buffers_(std::move(buffers)) {
    if (threads == Threads::kTwo) sender_.start();
  }
  std::span<std::byte> input() override { return {}; }
  std::span<std::byte> output() override { return {}; }
  void run() override {
    const int to = links_.to_next();
    const int from = links_.from_previous();
    StreamBuffers& buffers = *buffers_;
    if (threads_ == Threads::kOne) {
      return exchange(to, from, manner_, {.out = buffers.out, .in = buffers.in});
    }
    const auto send = std::make_shared<std::packaged_task<void()>>(
        [&, to] { exchange(to, to, manner_, {.out = buffers.out}); });
    std::future<void> sent = send->get_future();
    sender_.post([send] { (*send)(); });
    try {
      exchange(from, from, manner_, {.in = buffers.in});
    } catch (const std::exception&) {
      net::end_writing(to);  // ends the send, which uses the buffers
      sent.wait();
      throw;
    }
    sent.get();
  }

 private:
  const Links& links_;
  Manner manner_;
  Threads threads_;
  std::shared_ptr<StreamBuffers> buffers_;
  TaskThread sender_;
};

/// A ping-pong between two hosts.
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
    // With more hosts a round trip is not a floor: a host that waits for no message is faster.
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

  /// The trials of a case are prepared together and run in turn, so they share one pair of buffers.
  /// The last trial frees the pair, so a case without a stream uses no memory. `holders_of`
  /// (bench.cpp) counts memory in this way.
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
                                             Timeout timeout) {
  return std::make_unique<StreamSubject>(addresses, host, Manner{waiting, timeout});
}

}  // namespace peal::bench
