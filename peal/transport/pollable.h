// Channels that sleep in poll(2), so that one sleep can cover several of them: mixed/ waits for
// this host and for others at once.
#pragma once

#include <poll.h>

#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/transport/transport.h"

namespace peal::transport {

class PollableChannel : public Channel {
 public:
  /// Appends the descriptors that end a sleep for `interests`; `interrupt` ends it too. Returns
  /// false if no sleep is needed, because one of the interests is ready.
  virtual bool prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) = 0;

  /// Call after the sleep, or in its place. `entries`: those that `prepare` appended, with the
  /// results of poll(2).
  virtual void finish(std::span<const pollfd> entries) = 0;
};

/// Channel::wait for such a channel. `entries` is scratch, so that a wait does not allocate.
void wait_by_poll(PollableChannel& channel,
                  std::span<const Interest> interests,
                  Deadline deadline,
                  std::vector<pollfd>& entries);

}  // namespace peal::transport
