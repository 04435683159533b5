#include "peal/store/tcp_session.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "peal/base/serialize.h"
#include "peal/net/socket.h"

namespace peal::store {
namespace {

/// At least what a text takes in a reply beside its bytes.
constexpr std::int64_t kTextHeader = 8;

/// Carries out a request that need not wait, and makes the reply.
struct Serve {
  Table& table;

  Reply operator()(const SetRequest& r) {
    table.set(r.key, r.value);
    return {};
  }
  Reply operator()(const TryGetRequest& r) {
    const std::string* value = table.find(r.key);
    if (value == nullptr) return {Outcome::kNothing, {}};
    return {Outcome::kDone, {*value}};
  }
  Reply operator()(const TryGetAllRequest& r) {
    Reply reply{Outcome::kDone, {std::string(r.keys.size(), '0')}};
    Bytes size(static_cast<std::int64_t>(r.keys.size()));
    for (std::size_t i = 0; i < r.keys.size(); ++i) {
      const std::string* value = table.find(r.keys[i]);
      if (value == nullptr) continue;
      reply.texts[0][i] = '1';
      reply.texts.push_back(*value);
      size += Bytes(static_cast<std::int64_t>(value->size()) + kTextHeader);
      if (size > kMaxMessage / 2) {
        throw Error(ErrorKind::kUsage, "the values of these keys are too large for one answer");
      }
    }
    return reply;
  }
  Reply operator()(const AddRequest& r) {
    return {Outcome::kDone, {std::to_string(table.add(r.key, r.amount))}};
  }
  Reply operator()(const CompareSetRequest& r) {
    return {Outcome::kDone, {table.compare_set(r.key, r.expected, r.desired)}};
  }
  Reply operator()(const EraseRequest& r) {
    return {table.erase(r.key) ? Outcome::kDone : Outcome::kNothing, {}};
  }
  Reply operator()(const AwaitRequest&) { return {}; }
  Reply operator()(const WillRequest&) { return {}; }
};

bool changes(const Request& request) {
  return !std::holds_alternative<TryGetRequest>(request) &&
         !std::holds_alternative<TryGetAllRequest>(request) &&
         !std::holds_alternative<AwaitRequest>(request) &&
         !std::holds_alternative<WillRequest>(request);
}

}  // namespace

TcpSession::TcpSession(Fd fd,
                       const net::Address& from,
                       const net::ProofContext& context,
                       TimePoint now)
    : since_(now),
      from_(from),
      handshake_(std::in_place, std::move(fd), net::Role::kAcceptor, context, net::Hello{}) {}

short TcpSession::interest() const {
  if (handshake_) return handshake_->interest();
  if (is_replying()) return POLLOUT;
  return parked_ ? POLLRDHUP : POLLIN;
}

bool TcpSession::has_work() const {
  return stream_ && !is_replying() && !parked_ && stream_->has_read_ahead();
}

TimePoint TcpSession::due() const { return parked_ ? parked_->due : TimePoint::max(); }

bool TcpSession::advance(Table& table, TimePoint now) {
  if (handshake_) {
    auto welcome = handshake_->advance();
    if (!welcome) return false;
    stream_ = std::move(welcome->stream);
    handshake_.reset();
  }
  flush();
  if (is_replying()) return false;
  if (parked_) {
    if (net::is_closed(fd())) throw Error(ErrorKind::kPeerLost, "a client left while it waited");
    return false;
  }
  const auto body = reader_.advance(*stream_);
  if (!body) return false;
  const Request request = decode_request(*body);
  handle(request, table, now);
  return changes(request);
}

void TcpSession::handle(const Request& request, Table& table, TimePoint now) {
  if (const auto* await = std::get_if<AwaitRequest>(&request)) {
    constexpr Timeout kLongest = std::chrono::hours(24 * 365);
    parked_ = Parked{await->keys, now + std::clamp(await->timeout, Timeout(0), kLongest)};
    look_again(table, now);
    return;
  }
  if (const auto* will = std::get_if<WillRequest>(&request)) last_wills_.push_back(*will);
  try {
    reply(std::visit(Serve{table}, request));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    reply({Outcome::kRefused, {std::string(error.message())}});
  }
}

void TcpSession::look_again(const Table& table, TimePoint now) {
  if (!parked_) return;
  const auto& keys = parked_->keys;
  std::size_t& next = parked_->next;
  while (next < keys.size() && table.find(keys[next]) != nullptr) ++next;
  const bool all_seen = next == keys.size();
  if (!all_seen && now < parked_->due) return;
  const std::vector<std::string> missing = table.missing(keys);
  if (missing.empty()) {
    parked_.reset();
    reply({});
  } else if (now >= parked_->due) {
    parked_.reset();
    reply({Outcome::kMissing, missing});
  } else {
    next = 0;  // a key that was found has been erased again
  }
}

void TcpSession::reply(const Reply& reply) {
  out_ = net::frame_of(encode(reply));
  sent_ = 0;
  flush();
}

void TcpSession::flush() {
  while (sent_ < out_.size()) {
    const std::array pieces = {bytes_of(std::string_view(out_).substr(sent_))};
    const net::Moved moved = stream_->try_write(pieces);
    if (moved.closed) throw Error(ErrorKind::kPeerLost, "a client left before its reply");
    if (moved.bytes == 0_B) return;
    sent_ += static_cast<std::size_t>(moved.bytes.value);
  }
  out_.clear();
  stream_->try_flush();
}

}  // namespace peal::store
