#include "peal/bench/stream_subject.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/base/thread.h"
#include "peal/bench/sizes.h"
#include "peal/net/line.h"
#include "peal/net/socket.h"

namespace peal::bench {
namespace {

constexpr Timeout kPatience = std::chrono::seconds(60);
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

bool is_failure(ssize_t moved) { return moved < 0 && errno != EAGAIN && errno != EINTR; }

/// Sends what the socket takes; whether that is anything.
bool send_some(int fd, Left& left) {
  if (left.out.empty()) return false;
  const ssize_t wrote = ::write(fd, left.out.data(), left.out.size());
  if (is_failure(wrote)) throw system_error("the bare stream cannot send", errno);
  if (wrote <= 0) return false;
  left.out = left.out.subspan(static_cast<std::size_t>(wrote));
  return true;
}

bool receive_some(int fd, Left& left) {
  if (left.in.empty()) return false;
  const ssize_t got = ::read(fd, left.in.data(), left.in.size());
  if (got == 0) throw system_error("the bare stream has ended", ECONNRESET);
  if (is_failure(got)) throw system_error("the bare stream cannot receive", errno);
  if (got <= 0) return false;
  left.in = left.in.subspan(static_cast<std::size_t>(got));
  return true;
}

/// Sends all of it to one and receives all of it from the other, on the calling thread: looks again
/// and again for a while where it has a core of its own, then sleeps until there is something to
/// do. A peer that is gone ends it.
void exchange(int to, int from, Waiting waiting, Left left) {
  const int looks = waiting == Waiting::kSpin ? 1000 : 1;
  int in_vain = 0;
  while (!left.is_done()) {
    const bool sent = send_some(to, left);
    const bool received = receive_some(from, left);
    in_vain = sent || received ? 0 : in_vain + 1;
    if (in_vain < looks) continue;
    std::array entries = {pollfd{left.out.empty() ? -1 : to, POLLOUT, 0},
                          pollfd{left.in.empty() ? -1 : from, POLLIN, 0}};
    ::poll(entries.data(), entries.size(), -1);
  }
}

/// Sends on a thread of its own while the caller receives.
class Sender final {
 public:
  Sender(int fd, Waiting waiting)
      : fd_(fd), waiting_(waiting), thread_(start_thread([this] { work(); })) {}
  ~Sender() {
    hand_over({}, Order::kEnd);
    thread_.join();
  }
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  void start(std::span<const std::byte> data) { hand_over(data, Order::kSend); }
  /// Returns when it has been sent. Throws what went wrong.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return order_ == Order::kNone; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  enum class Order : unsigned char { kNone, kSend, kEnd };

  void hand_over(std::span<const std::byte> data, Order order) {
    const std::lock_guard lock(mutex_);
    data_ = data;
    order_ = order;
    changed_.notify_all();
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return order_ != Order::kNone; });
      if (order_ == Order::kEnd) return;
      lock.unlock();
      std::exception_ptr error;
      try {
        exchange(fd_, fd_, waiting_, {.out = data_});
      } catch (const Error&) {
        error = std::current_exception();
      }
      lock.lock();
      error_ = error;
      order_ = Order::kNone;
      changed_.notify_all();
    }
  }

  int fd_;
  Waiting waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<const std::byte> data_;
  Order order_ = Order::kNone;
  std::exception_ptr error_;
  std::thread thread_;
};

/// This host's connections: to the next host, and from the one before; of two hosts they are one.
struct Links {
  Fd next, previous;
  int to_next() const { return next.get(); }
  int from_previous() const { return previous ? previous.get() : next.get(); }
};

Links connect(const std::vector<std::string>& addresses, Rank host) {
  const Deadline deadline = Deadline::after(kPatience);
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

class TwoWay final : public Trial {
 public:
  TwoWay(const Links& links, Waiting waiting, Threads threads, Bytes size)
      : links_(links),
        waiting_(waiting),
        out_(static_cast<std::size_t>(size.value), std::byte{1}),
        in_(out_.size()) {
    if (threads == Threads::kTwo) sender_.emplace(links.to_next(), waiting);
  }
  std::span<std::byte> input() override { return {}; }
  std::span<std::byte> output() override { return {}; }
  void run() override {
    const int from = links_.from_previous();
    if (!sender_) return exchange(links_.to_next(), from, waiting_, {.out = out_, .in = in_});
    sender_->start(out_);
    exchange(from, from, waiting_, {.in = in_});
    sender_->wait();
  }

 private:
  const Links& links_;
  Waiting waiting_;
  std::vector<std::byte> out_, in_;
  std::optional<Sender> sender_;
};

/// Between two hosts.
class RoundTrip final : public Trial {
 public:
  RoundTrip(const Links& links, Waiting waiting, Rank host, Bytes size)
      : links_(links),
        waiting_(waiting),
        host_(host),
        data_(static_cast<std::size_t>(size.value)) {}
  std::span<std::byte> input() override { return {}; }
  std::span<std::byte> output() override { return {}; }
  void run() override {
    const int peer = links_.to_next();
    if (host_ == 0) exchange(peer, peer, waiting_, {.out = data_});
    exchange(peer, peer, waiting_, {.in = data_});
    if (host_ == 1) exchange(peer, peer, waiting_, {.out = data_});
  }

 private:
  const Links& links_;
  Waiting waiting_;
  Rank host_;
  std::vector<std::byte> data_;
};

class StreamSubject final : public Subject {
 public:
  StreamSubject(const std::string& addresses, Rank host, Waiting waiting)
      : host_(host),
        waiting_(waiting),
        addresses_(parse_list("addresses", addresses)),
        links_(connect(addresses_, host)) {
    const std::string congestion = config_from(process_environment()).congestion;
    for (const int fd : {links_.to_next(), links_.from_previous()}) {
      net::set_no_delay(fd);
      ::fcntl(fd, F_SETFL, O_NONBLOCK);
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
      return std::make_unique<RoundTrip>(links_, waiting_, host_, bytes_of(c));
    }
    const Threads threads = variant == "two-threads" ? Threads::kTwo : Threads::kOne;
    return std::make_unique<TwoWay>(links_, waiting_, threads, bytes_between_hosts(c, hosts()));
  }

 private:
  int hosts() const { return static_cast<int>(addresses_.size()); }

  Rank host_;
  Waiting waiting_;
  std::vector<std::string> addresses_;
  Links links_;
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
                                             Waiting waiting) {
  return std::make_unique<StreamSubject>(addresses, host, waiting);
}

}  // namespace peal::bench
