// Makes one link to a peer, in steps that do not block: connects to the peer's addresses in turn,
// proves the job's secret, and asks for the link. Used by dialler.cpp while a group connects, and
// by linker.cpp afterwards.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/net/address.h"
#include "peal/net/handshake.h"
#include "peal/net/socket.h"
#include "peal/net/stream.h"
#include "peal/transport/link/links.h"

namespace peal::transport {

/// The acceptor's answer to a rank that has proved the secret and asks for a link. The numbers are
/// part of the wire format.
enum class Answer : unsigned char {
  kTaken = 0x50,       // the acceptor has recorded the link
  kUnexpected = 0x51,  // the acceptor does not know this kind of link to this rank
  kNotNow = 0x52,      // dial again later: the acceptor makes this link itself, or is not ready
};

/// The context of a proof between the dialling rank and `acceptor`. It names the acceptor, because
/// two hosts may have the same address: a rank that answers there must not pass for another rank.
net::ProofContext context_of(const LinkPlan& plan, Rank acceptor);

/// Sets up a new connection at `address`, on both ends: no Nagle's delay on TCP, and the plan's
/// congestion control.
void set_up(const LinkPlan& plan, int fd, const net::Address& address);

/// Threads: one.
class Dial {
 public:
  /// Borrows `plan`. `first` is the index of the address to try first.
  Dial(const LinkPlan& plan, const LinkKey& key, std::size_t first = 0);

  /// Continues. Returns the link once it is made. Until then, retries.
  /// Errors, if a retry cannot help: peer_lost (all addresses refuse), usage (no process there
  ///   knows the secret or has the plan's protection), mismatch (the rank does not expect this
  ///   link), resource.
  std::unique_ptr<net::Stream> advance(TimePoint now);

  /// What poll(2) must watch before the next `advance`, and when to call it if nothing happens.
  pollfd entry() const;
  TimePoint due() const;

  /// Whether the request is on its way, so that the peer may take the link.
  bool has_asked() const { return has_asked_; }
  /// The index of the address that is tried, or that has led to the peer.
  std::size_t address() const { return (first_ + tried_) % peer().addresses.size(); }
  /// The error of a caller that gives up: names the peer and what happened at its addresses.
  Error unreachable() const;

 private:
  /// The errors of the attempts at all addresses.
  struct Failures {
    ErrorKind kind() const;

    std::vector<std::string> texts;
    std::optional<ErrorKind> fixable_kind;  // an error that the user can fix
    bool hopeless = true;                   // a retry cannot help
  };

  const LinkPlan::Peer& peer() const { return plan_.peers.at(key_.peer); }
  std::unique_ptr<net::Stream> try_address(TimePoint now);
  std::unique_ptr<net::Stream> ask();
  Error too_slow() const;
  void add_failure(const Error& error);
  void next_address(TimePoint now);

  const LinkPlan& plan_;
  const LinkKey key_;
  const std::size_t first_;
  std::size_t tried_ = 0;  // addresses of this round
  std::chrono::milliseconds attempt_;
  std::chrono::milliseconds pause_;
  TimePoint resume_{};  // after a pause
  Failures failures_;   // of this round, or of the last one if this round has none yet
  bool is_new_round_ = true;

  // The attempt at one address, in the order of its steps.
  TimePoint attempt_ends_{};
  std::optional<net::Connecting> connecting_;
  std::optional<net::Handshake> handshake_;
  std::unique_ptr<net::Stream> stream_;
  bool has_asked_ = false;
  bool is_answered_ = false;  // a process has accepted the connection
};

}  // namespace peal::transport
