#include "peal/bench/stream_subject.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
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

void send_all(int fd, std::span<const std::byte> data) {
  while (!data.empty()) {
    const auto wrote = ::write(fd, data.data(), data.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) throw system_error("the bare stream cannot send", errno);
    data = data.subspan(static_cast<std::size_t>(wrote));
  }
}

void receive_all(int fd, std::span<std::byte> into) {
  while (!into.empty()) {
    const auto got = ::read(fd, into.data(), into.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) throw system_error("the bare stream cannot receive", errno);
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

/// Sends on a thread of its own while the caller receives.
class Sender final {
 public:
  explicit Sender(int fd) : fd_(fd), thread_(start_thread([this] { work(); })) {}
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
        send_all(fd_, data_);
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

void set_blocking(const Fd& fd, int flags) {
  if (fd) ::fcntl(fd.get(), F_SETFL, flags);
}

class TwoWay final : public Trial {
 public:
  TwoWay(const Links& links, Bytes size)
      : links_(links),
        sender_(links.to_next()),
        out_(static_cast<std::size_t>(size.value), std::byte{1}),
        in_(out_.size()) {
    set_blocking(links.next, 0);
    set_blocking(links.previous, 0);
  }
  std::span<std::byte> input() override { return {}; }
  std::span<std::byte> output() override { return {}; }
  void run() override {
    sender_.start(out_);
    receive_all(links_.from_previous(), in_);
    sender_.wait();
  }

 private:
  const Links& links_;
  Sender sender_;
  std::vector<std::byte> out_, in_;
};

class RoundTrip final : public Trial {
 public:
  RoundTrip(const Links& links, Rank host, Bytes size)
      : links_(links), host_(host), data_(static_cast<std::size_t>(size.value)) {
    set_blocking(links.next, O_NONBLOCK);
    set_blocking(links.previous, O_NONBLOCK);
  }
  std::span<std::byte> input() override { return {}; }
  std::span<std::byte> output() override { return {}; }
  void run() override {
    if (host_ == 0) {
      send_all(links_.to_next(), data_);
      receive_all(links_.to_next(), data_);
    } else if (host_ == 1) {
      receive_all(links_.from_previous(), data_);
      send_all(links_.from_previous(), data_);
    }
  }

 private:
  const Links& links_;
  Rank host_;
  std::vector<std::byte> data_;
};

class StreamSubject final : public Subject {
 public:
  StreamSubject(const std::string& addresses, Rank host)
      : host_(host),
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
    const bool is_small = bytes_of(c) <= kRoundTrips;
    const bool is_round_trip = variant == "round-trip";
    if (is_round_trip && hosts() > 2) return false;  // who waits for no message is no measure
    return is_small == is_round_trip && bytes_between_hosts(c, hosts()) > 0_B;
  }
  std::unique_ptr<Trial> prepare(const Case& c, const std::string& variant) override {
    if (variant == "round-trip") return std::make_unique<RoundTrip>(links_, host_, bytes_of(c));
    return std::make_unique<TwoWay>(links_, bytes_between_hosts(c, hosts()));
  }

 private:
  int hosts() const { return static_cast<int>(addresses_.size()); }

  Rank host_;
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

std::unique_ptr<Subject> make_stream_subject(const std::string& addresses, Rank host) {
  return std::make_unique<StreamSubject>(addresses, host);
}

}  // namespace peal::bench
