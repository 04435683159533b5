// Helpers for the tests of this folder: ranks as threads, and streams of known bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/transport/link/connect.h"
#include "peal/transport/transport.h"

namespace peal::transport::testing {

using Transports = std::vector<std::unique_ptr<Transport>>;

/// A longer wait is a hang, even on a busy machine.
inline constexpr Duration kHang = std::chrono::minutes(5);

/// The longest wait of any test. It is longer than kHang, so that a test can tell a wait that ended
/// early from one that ended here.
inline Deadline test_deadline() { return Deadline::after(std::chrono::minutes(10)); }

/// Calls `body(rank)` in a thread for each rank. Returns the results by rank, or rethrows the first
/// exception.
template <class Body>
auto run_ranks(int ranks, const Body& body) {
  using Result = decltype(body(0));
  std::vector<std::future<Result>> running;
  for (Rank rank = 0; rank < ranks; ++rank) {
    running.push_back(std::async(std::launch::async, [&body, rank] { return body(rank); }));
  }
  std::vector<Result> results;
  std::exception_ptr first;
  for (auto& future : running) {
    try {
      results.push_back(future.get());
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
  return results;
}

/// Connects ranks of one process like ranks in processes. `hosts[r]` is the pretended host of rank
/// r. Without `hosts` all ranks are on one host.
inline Transports connect_all(int ranks,
                              ConnectOptions options,
                              std::vector<std::string> hosts = {}) {
  options.size = ranks;
  options.secret = Secret("a secret of the tests");
  options.listen_on = {net::Address::parse("127.0.0.1:0")};
  options.arena = 64_MiB;
  std::vector<std::unique_ptr<PendingTransport>> pending;
  std::vector<Contact> contacts;
  for (Rank rank = 0; rank < ranks; ++rank) {
    options.rank = rank;
    pending.push_back(open(options));
    contacts.push_back(pending.back()->contact());
    if (!hosts.empty()) contacts.back().host_id = hosts.at(static_cast<std::size_t>(rank));
  }
  return run_ranks(ranks, [&](Rank rank) {
    return pending[static_cast<std::size_t>(rank)]->connect(contacts, test_deadline());
  });
}

/// The byte at a position of the stream from one rank to another. Streams, and positions less than
/// 2^16 apart, differ enough that a lost, doubled or swapped byte shows.
inline std::byte byte_at(Rank from, Rank to, std::uint64_t position) {
  const std::uint64_t mixed = (position + 1 + (static_cast<std::uint64_t>(from) << 40) +
                               (static_cast<std::uint64_t>(to) << 20)) *
                              0x9E3779B97F4A7C15u;
  return static_cast<std::byte>(mixed >> 56);
}

inline std::vector<std::byte> stream_bytes(Rank from,
                                           Rank to,
                                           std::uint64_t position,
                                           std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(from, to, position + i);
  return bytes;
}

inline ConstPiece piece_of(const std::vector<std::byte>& bytes) { return {bytes}; }

inline std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

/// Returns once no sent bytes are held.
inline void flush(Channel& channel, Rank peer, Deadline deadline) {
  while (!channel.try_flush(peer)) {
    if (deadline.passed()) throw Error(ErrorKind::kTimeout, "flush");
    const Interest interest{peer, Readiness::kWritable};
    channel.wait({&interest, 1}, deadline);
  }
}

/// Sends all of `bytes` and waits until they have left.
inline void send_all(Channel& channel, Rank peer, ConstPiece bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const Transfer sent = channel.try_send(peer, {&bytes, 1});
    if (sent.closed) throw Error(ErrorKind::kPeerLost, "closed while sending");
    bytes = bytes.subspan(static_cast<std::size_t>(sent.bytes.value));
    if (sent.bytes > 0_B) continue;
    if (deadline.passed()) throw Error(ErrorKind::kTimeout, "send_all");
    const Interest interest{peer, Readiness::kWritable};
    channel.wait({&interest, 1}, deadline);
  }
  flush(channel, peer, deadline);
}

/// Receives `size` bytes, or fewer if the stream closes before.
inline std::vector<std::byte> receive_all(Channel& channel,
                                          Rank peer,
                                          std::size_t size,
                                          Deadline deadline) {
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  while (done < size) {
    const Transfer got = channel.try_receive(peer, std::span(bytes).subspan(done));
    done += static_cast<std::size_t>(got.bytes.value);
    if (got.closed) break;
    if (got.bytes > 0_B) continue;
    if (deadline.passed()) throw Error(ErrorKind::kTimeout, "receive_all");
    const Interest interest{peer, Readiness::kReadable};
    channel.wait({&interest, 1}, deadline);
  }
  bytes.resize(done);
  return bytes;
}

/// Sends as many bytes as possible without waiting; returns their number.
inline std::uint64_t fill(Channel& channel, Rank self, Rank peer, Deadline deadline) {
  std::uint64_t position = 0;
  int idle = 0;
  while (idle < 3 && !deadline.passed()) {  // a socket may take more a moment later
    const auto bytes = stream_bytes(self, peer, position, 10'000);
    const ConstPiece piece(bytes);
    const Transfer sent = channel.try_send(peer, {&piece, 1});
    position += static_cast<std::uint64_t>(sent.bytes.value);
    idle = sent.bytes > 0_B ? 0 : idle + 1;
  }
  return position;
}

}  // namespace peal::transport::testing
