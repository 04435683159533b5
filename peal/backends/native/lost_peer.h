// What a rank says of a peer that it has lost: who it was, what is known of its end, and what this
// rank was in. For both loops of the backend, whichever hears of it first.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight.h"
#include "peal/transport/transport.h"

namespace peal::native {

/// What a rank of the world has told its peers of the exception that takes it out; nothing while it
/// has not.
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

  /// Of a peer whose streams have ended without a farewell: "rank 2 (pid 77 on b, over shm) was
  /// lost: it was killed by SIGKILL; rank 0 of the group world was in all_reduce #12 (sum of 1000
  /// f32)". `operation`: what this rank was in; may be empty.
  /// Cost: waits up to 100 ms for how its process has ended.
  Error lost(Rank peer, const std::string& operation) const;

  /// Of one that has said farewell, while a collective of this rank still needs it.
  /// Cost: as `with_what_it_threw`.
  Error left(Rank peer, Departure departure, const std::string& operation) const;

  /// What is said of one that has left, with what it threw where an exception took it out and it
  /// has told that to a group which this one was made of.
  /// Cost: after an exception, in a group that was made of another, waits for that up to 500 ms.
  Error with_what_it_threw(Rank peer, Departure departure, const Error& left) const;

 private:
  std::string name_of(Rank peer) const;
  std::string how_it_ended(Rank peer) const;

  const Parts parts_;
};

}  // namespace peal::native
