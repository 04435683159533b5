#include "peal/store/tcp_store.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/base/parse_number.h"
#include "peal/base/serialize.h"
#include "peal/net/frame.h"
#include "peal/net/handshake.h"
#include "peal/net/socket.h"
#include "peal/store/table.h"
#include "peal/store/tcp_protocol.h"

namespace peal::store {
namespace {

/// How long a client waits that the server has dropped before its proof.
constexpr Duration kPauseAfterDrop = std::chrono::milliseconds(20);

/// A connection and its replies. A reply that comes after the deadline of its call is read by the
/// next call. If a slow server got a new connection for each late reply instead, it would become
/// slower and slower.
struct Connection {
  explicit operator bool() const { return stream != nullptr; }

  std::unique_ptr<net::Stream> stream;
  net::FrameReader reader{kMaxMessage, "store reply"};
  int due_replies = 0;
  bool is_in_step = true;  // no request was sent in part
};

std::unique_ptr<net::Stream> introduce(Fd fd,
                                       const net::ProofContext& context,
                                       Deadline deadline,
                                       const Interrupt& interrupt = {}) {
  if (!net::peer_address(fd.get()).is_unix()) net::set_no_delay(fd.get());
  return net::shake_hands(std::move(fd), net::Role::kConnector, context, {}, deadline, interrupt)
      .stream;
}

/// Each call uses its own connection; idle connections are kept for later calls. So a call that
/// waits does not delay other threads, and a call costs one round trip.
class TcpStore final : public Store {
 public:
  TcpStore(std::unique_ptr<net::Stream> first,
           net::ProofContext context,
           Timeout timeout,
           std::string name)
      : server_(net::peer_address(first->fd())),
        context_(std::move(context)),
        timeout_(timeout),
        name_(std::move(name)) {
    keep(Connection{.stream = std::move(first)});
  }

  void set(std::string_view key, std::string_view value) override {
    check_key(key);
    check_value(key, value);
    ask(SetRequest{std::string(key), std::string(value)}, "set", key);
  }

  std::string get(std::string_view key, Deadline deadline) override {
    check_key(key);
    while (true) {
      if (auto value = fetch(key, with_grace(deadline))) return *value;
      await({std::string(key)}, "get", deadline);  // the key may be erased before the next fetch
    }
  }

  std::optional<std::string> try_get(std::string_view key) override {
    check_key(key);
    return fetch(key, Deadline::after(timeout_));
  }

  std::vector<std::optional<std::string>> try_get_all(
      const std::vector<std::string>& keys) override {
    if (keys.empty()) return {};
    for (const std::string& key : keys) check_key(key);
    Reply reply = ask(TryGetAllRequest{keys}, "get", keys.front());
    std::vector<std::optional<std::string>> values(keys.size());
    std::size_t next = 1;
    if (reply.texts.empty() || reply.texts[0].size() != keys.size()) throw malformed_reply();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (reply.texts[0][i] != '1') continue;
      if (next == reply.texts.size()) throw malformed_reply();
      values[i] = std::move(reply.texts[next++]);
    }
    return values;
  }

  std::int64_t add(std::string_view key, std::int64_t amount) override {
    check_key(key);
    const std::string text = text_of(ask(AddRequest{std::string(key), amount}, "add to", key));
    if (const auto sum = try_parse_number<std::int64_t>(text)) return *sum;
    throw malformed_reply();
  }

  std::string compare_set(std::string_view key,
                          std::string_view expected,
                          std::string_view desired) override {
    check_key(key);
    check_value(key, expected);
    check_value(key, desired);
    return text_of(
        ask(CompareSetRequest{std::string(key), std::string(expected), std::string(desired)},
            "set",
            key));
  }

  void wait(const std::vector<std::string>& keys, Deadline deadline) override {
    for (const std::string& key : keys) check_key(key);
    if (!keys.empty()) await(keys, "wait for", deadline);
  }

  bool erase(std::string_view key) override {
    check_key(key);
    return ask(EraseRequest{std::string(key)}, "erase", key).outcome == Outcome::kDone;
  }

  /// Uses a separate connection, which is open as long as this store.
  void set_will(std::string_view key, std::string_view value) override {
    check_key(key);
    check_value(key, value);
    const Deadline deadline = Deadline::after(timeout_);
    const WillRequest request{std::string(key), std::string(value)};
    will_connection_.with([&](Connection& witness) {
      if (!witness) witness = connect(deadline);
      try {
        exchange(witness, net::frame_of(encode(Request(request))), deadline);
      } catch (const Error& error) {
        throw unanswered(error, "keep a last will for", key);
      }
    });
  }

  bool answers(Deadline deadline) override {
    try {
      fetch("any key", deadline);
      return true;
    } catch (const Error&) {
      return false;
    }
  }

 private:
  static Error malformed_reply() {
    return Error(ErrorKind::kMismatch, "malformed store reply: it lacks its value");
  }

  static std::string text_of(Reply reply) {
    if (reply.texts.size() != 1) throw malformed_reply();
    return std::move(reply.texts.front());
  }

  std::optional<std::string> fetch(std::string_view key, Deadline deadline) {
    Reply reply = ask(TryGetRequest{std::string(key)}, "get", key, deadline);
    if (reply.outcome == Outcome::kNothing) return std::nullopt;
    return text_of(std::move(reply));
  }

  void await(const std::vector<std::string>& keys, std::string_view verb, Deadline deadline) {
    const AwaitRequest request{keys, deadline.left()};
    const Reply reply = ask(request, verb, keys.front(), with_grace(deadline));
    if (reply.outcome == Outcome::kMissing) throw missing_keys(reply.texts);
  }

  Reply ask(const Request& request, std::string_view verb, std::string_view key) {
    return ask(request, verb, key, Deadline::after(timeout_));
  }

  /// Errors: as Store. A connection that failed is not used again, unless only its reply is late.
  Reply ask(const Request& request,
            std::string_view verb,
            std::string_view key,
            Deadline deadline) {
    const std::string body = encode(request);
    if (Bytes(static_cast<std::int64_t>(body.size())) > kMaxMessage) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("too many keys in one wait: {} bytes; wait for fewer at a time",
                              body.size()));
    }
    Reply reply;
    try {
      Connection connection = take_connection(deadline);
      try {
        reply = exchange(connection, net::frame_of(body), deadline);
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::kTimeout && connection.is_in_step)
          keep(std::move(connection));
        throw;
      }
      keep(std::move(connection));
    } catch (const Error& error) {
      throw unanswered(error, verb, key);
    }
    if (reply.outcome == Outcome::kRefused) throw Error(ErrorKind::kUsage, text_of(reply));
    return reply;
  }

  Error unanswered(const Error& error, std::string_view verb, std::string_view key) const {
    if (error.kind() != ErrorKind::kPeerLost && error.kind() != ErrorKind::kTimeout) return error;
    return Error(error.kind(),
                 fmt::format("{} at {} {} when asked to {} \"{}\" ({})",
                             name_,
                             server_.to_string(),
                             error.kind() == ErrorKind::kPeerLost ? "is gone" : "does not answer",
                             verb,
                             key,
                             error.message()));
  }

  Connection take_connection(Deadline deadline) {
    Connection connection = idle_.with([](auto& idle) {
      if (idle.empty()) return Connection();
      Connection last = std::move(idle.back());
      idle.pop_back();
      return last;
    });
    return connection ? std::move(connection) : connect(deadline);
  }

  void keep(Connection connection) {
    idle_.with([&](auto& idle) { idle.push_back(std::move(connection)); });
  }

  /// A server with a crowd of clients drops those that are slow to prove the secret: retry.
  Connection connect(Deadline deadline) {
    while (true) {
      Fd fd = net::connect_to(server_, deadline);
      try {
        return Connection{.stream = introduce(std::move(fd), context_, deadline)};
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kPeerLost || deadline.passed()) throw;
      }
      std::this_thread::sleep_until(deadline.within(kPauseAfterDrop).at());
    }
  }

  static Reply exchange(Connection& connection, std::string_view frame, Deadline deadline) {
    connection.is_in_step = false;
    net::write_all(*connection.stream, bytes_of(frame), deadline);
    connection.is_in_step = true;
    ++connection.due_replies;
    while (true) {
      if (const auto body = connection.reader.advance(*connection.stream)) {
        if (--connection.due_replies == 0) return decode_reply(*body);
        continue;  // the late reply of an earlier call
      }
      pollfd entry{connection.stream->fd(), POLLIN, 0};
      if (!net::poll_until({&entry, 1}, deadline)) {
        throw Error(ErrorKind::kTimeout, "no reply in time");
      }
    }
  }

  net::Address server_;
  net::ProofContext context_;
  Timeout timeout_;
  std::string name_;  // of the server, for messages
  Guarded<std::vector<Connection>> idle_;
  Guarded<Connection> will_connection_;  // for last wills
};

}  // namespace

std::unique_ptr<Store> connect_tcp_store(const std::vector<net::Address>& addresses,
                                         const net::ProofContext& context,
                                         Timeout timeout,
                                         Deadline deadline,
                                         const std::string& server,
                                         const Interrupt& interrupt) {
  while (true) {
    Fd fd = net::connect_patiently(addresses, deadline, interrupt);
    try {
      return std::make_unique<TcpStore>(
          introduce(std::move(fd), context, deadline, interrupt), context, timeout, server);
    } catch (const Error& error) {
      // The server of an earlier job may just have ended: retry.
      if (error.kind() != ErrorKind::kPeerLost || deadline.passed()) throw;
    }
    let_interrupt(interrupt);
    std::this_thread::sleep_until(deadline.within(kPauseAfterDrop).at());
  }
}

}  // namespace peal::store
