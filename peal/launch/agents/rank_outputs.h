// The output of the ranks of one agent: the pipes, and the frames that carry their bytes to the
// launcher. Used by agent.cpp.
#pragma once

#include <poll.h>

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "peal/launch/agents/agent_link.h"
#include "peal/system/fd.h"

namespace peal::launch::agents {

class RankOutputs final {
 public:
  /// `link` must outlive this object. While the link is full, no output is read.
  explicit RankOutputs(AgentLink& link) : link_(link) {}

  struct Writers {
    Fd out;
    Fd err;
  };
  /// Makes the pipes of a rank, and returns the ends for the rank. Errors: resource.
  Writers add(Rank rank);

  /// Adds two descriptors of each rank to poll.
  void add_to(std::vector<pollfd>& entries) const;
  /// Reads from the ranks, and closes outputs that have ended. `entries`: those of add_to.
  void read(std::span<const pollfd> entries);
  /// After the end of the rank: reads the rest of its output.
  void drain(Rank rank);
  /// Whether all outputs have ended.
  bool is_empty() const { return streams_.empty(); }
  /// Drops outputs that have not ended.
  void clear() { streams_.clear(); }

 private:
  struct Streams {
    Fd out;
    Fd err;
  };

  /// Returns whether the output is still open and there may be more to read.
  bool read_some(Rank rank, Channel channel);

  AgentLink& link_;
  std::map<Rank, Streams> streams_;
};

}  // namespace peal::launch::agents
