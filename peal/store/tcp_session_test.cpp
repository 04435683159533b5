// Drives sessions of the store's server by hand. While poll(2) reports nothing and `has_work` is
// false, `advance` must do nothing, so that the server may sleep. A server that calls `advance`
// only for these two reasons must answer every request.
#include "peal/store/tcp_session.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>

#include <gtest/gtest.h>

#include "peal/base/serialize.h"
#include "peal/net/socket.h"

namespace peal::store {
namespace {

struct Kind {
  std::string name;
  LinkProtection protection;
  enum class Socket : unsigned char { kUnix, kTcp } socket;
};

/// The counters of a TCP connection; zeros for unix sockets, where sent data arrives at once.
tcp_info info_of(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size);
  return info;
}
auto sent_by(int fd) { return info_of(fd).tcpi_bytes_sent - info_of(fd).tcpi_bytes_retrans; }
auto received_by(int fd) { return info_of(fd).tcpi_bytes_received; }

net::SocketPair connect(Kind::Socket socket) {
  if (socket == Kind::Socket::kUnix) return net::make_socket_pair();
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  const Fd listener = net::listen_on(net::Address::parse("127.0.0.1:0"));
  Fd client = net::connect_to(net::local_address(listener.get()), deadline);
  Fd server = net::accept_from(listener.get(), deadline).value();
  for (const int fd : {client.get(), server.get()}) net::set_no_delay(fd);
  return {std::move(client), std::move(server)};
}

/// A client that sends requests without waiting for replies, and the session that serves it.
class Conversation {
 public:
  Conversation(const Kind& kind, net::SocketPair sockets, unsigned seed)
      : random_(seed),
        context_{.secret = Secret("hush"),
                 .job = "job",
                 .purpose = "store",
                 .protection = kind.protection},
        client_fd_(sockets.a.get()),
        greeting_(std::in_place, std::move(sockets.a), net::Role::kConnector, context_, hello_),
        session_(std::move(sockets.b), net::Address::parse("127.0.0.1:1"), context_, Clock::now()) {
  }

  /// One step of the client, or one step of the server if the server is called.
  void step() {
    if (random_() % 3 != 0) return step_of_client();
    settle();
    if (is_called()) advance();
  }

  /// Whether a sleeping server would be woken for the session.
  bool is_called() const {
    pollfd entry{session_.fd(), session_.interest(), 0};
    return session_.has_work() || net::poll_until({&entry, 1}, Deadline(Clock::now()));
  }

  /// Calls `advance` although nothing calls the server. Returns whether the session changed.
  bool moves_without_call() {
    const auto look = [&] {
      return std::tuple(handled(), session_.is_proved(), session_.interest(), session_.due());
    };
    const auto before = look();
    advance();
    return look() != before;
  }

  /// Lets the client finish its requests and read all replies, and the server handle its calls.
  void finish() {
    for (int quiet = 0; quiet < 50; ++quiet) {
      const int before = replies_;
      step_of_client();
      settle();
      if (is_called() || replies_ != before || !out_.empty()) quiet = 0;
      if (is_called()) advance();
    }
  }

  /// Waits until sent data has arrived on both sides. Over loopback this may take a moment.
  void settle() const {
    while (sent_by(client_fd_) > received_by(session_.fd()) ||
           sent_by(session_.fd()) > received_by(client_fd_)) {
      std::this_thread::yield();
    }
  }

  int requests() const { return requests_; }
  int replies() const { return replies_; }

 private:
  void advance() { session_.advance(table_, Clock::now()); }

  /// The number of requests that the server has handled. Each request counts in the table.
  std::int64_t handled() {
    const std::string* const count = table_.find("count");
    return count != nullptr ? std::stoll(*count) : 0;
  }

  void step_of_client() {
    if (greeting_) {
      auto welcome = greeting_->advance();
      if (!welcome) return;
      client_ = std::move(welcome->stream);
      greeting_.reset();
    }
    if (requests_ < kRequests && random_() % 4 == 0) {
      out_ += net::frame_of(encode(Request(AddRequest{"count", 1})));
      ++requests_;
    }
    if (const std::size_t size = random_() % (out_.size() + 1); size > 0) {
      const std::array pieces = {bytes_of(std::string_view(out_).substr(0, size))};
      out_.erase(0, static_cast<std::size_t>(client_->try_write(pieces).bytes.value));
    }
    client_->try_flush();
    if (random_() % 2 == 0 && reader_.advance(*client_)) ++replies_;
  }

  static constexpr int kRequests = 40;

  std::mt19937 random_;
  net::ProofContext context_;
  net::Hello hello_;
  int client_fd_;
  std::optional<net::Handshake> greeting_;
  std::unique_ptr<net::Stream> client_;
  net::FrameReader reader_{kMaxMessage, "reply"};
  std::string out_;
  int requests_ = 0;
  int replies_ = 0;

  Table table_;
  TcpSession session_;
};

class TcpSessionTest : public ::testing::TestWithParam<Kind> {};

TEST_P(TcpSessionTest, AdvanceActsOnlyWhenCalledForAndAnswersAllRequests) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Conversation talk(GetParam(), connect(GetParam().socket), seed);
    for (int step = 0; step < 500; ++step) {
      talk.step();
      talk.settle();
      if (talk.is_called()) continue;
      ASSERT_FALSE(talk.moves_without_call()) << "seed " << seed << ", step " << step;
    }
    talk.finish();
    ASSERT_GT(talk.requests(), 0) << "seed " << seed;
    ASSERT_EQ(talk.replies(), talk.requests()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds,
    TcpSessionTest,
    ::testing::Values(Kind{"unix", LinkProtection::kPlain, Kind::Socket::kUnix},
                      Kind{"checked", LinkProtection::kChecked, Kind::Socket::kTcp},
                      Kind{"encrypted", LinkProtection::kEncrypted, Kind::Socket::kTcp}),
    [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace peal::store
