// The errors about a lost peer: its name, how it ended, and which operation this rank was in. Used
// by both loops of the backend, whichever detects the loss first.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/observe/end_file.h"
#include "peal/transport/transport.h"

namespace peal::native {

/// The exception of a rank of the world, as reported to the groups above this one; nothing until
/// then.
using WhatWasThrown = std::function<std::optional<std::string>(Rank world_rank)>;

/// Threads: any number at once.
class LostPeers final {
 public:
  struct Parts {
    std::string group;  // its name, for errors
    Rank self = 0;
    std::vector<Rank> world_ranks;  // of the group's ranks, in order
    const transport::Transport& transport;
    observe::EndPlace ends;
    WhatWasThrown what_was_thrown = {};  // as in native::Options
  };

  explicit LostPeers(Parts parts) : parts_(std::move(parts)) {}

  /// The error for a peer whose streams have ended without notice: "rank 2 (pid 77 on b, over shm)
  /// was lost: it was killed by SIGKILL; rank 0 of the group world was in all_reduce #12 (sum of
  /// 1000 f32)". `operation`: the operation that this rank was in; may be empty.
  /// Cost: waits up to 100 ms for the record of the end of its process.
  Error lost(Rank peer, const std::string& operation) const;

  /// The error for a peer that sends bytes that are invalid in peal's protocol. `how`: "it sends
  /// bytes that ...".
  Error damaged(Rank peer, const std::string& how, const std::string& operation) const;

  /// The error for a peer that has left without an error, while a collective of this rank still
  /// needs it.
  /// Cost: as `with_what_it_threw`.
  Error left(Rank peer, Departure departure, const std::string& operation) const;

  /// Adds to the error `left` the exception by which the peer left, if the peer has reported it to
  /// a parent group.
  /// Cost: after an exception, a sub-group waits up to 500 ms for that report.
  Error with_what_it_threw(Rank peer, Departure departure, const Error& left) const;

  /// For an error about a peer that an operation waits for. The cause is known if the peer is
  /// stopped or unreachable.
  ErrorDetails details_of_missing(Rank peer, const std::string& operation) const;

 private:
  struct HowItEnded {
    std::string text;
    ErrorCause cause;
  };

  std::string name_of(Rank peer) const;
  HowItEnded how_it_ended(Rank peer) const;
  ErrorDetails details(Rank peer, const std::string& operation, ErrorCause cause) const;

  const Parts parts_;
};

}  // namespace peal::native
