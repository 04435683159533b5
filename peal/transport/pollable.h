// Channels that sleep in poll(2), so that one sleep can cover several of them: mixed/ waits for the
// own host and for others at once.
#pragma once

#include <poll.h>

#include <span>
#include <vector>

#include "peal/base/clock.h"
#include "peal/transport/transport.h"

namespace peal::transport {

class PollableChannel : public Channel {
 public:
  /// Appends what ends a sleep that waits for `interests`, `interrupt` included. Returns false when
  /// there is no need to sleep, since one of them is true already.
  virtual bool prepare(std::span<const Interest> interests, std::vector<pollfd>& entries) = 0;

  /// After the sleep, or in its place: what `prepare` appended, with what poll(2) found.
  virtual void finish(std::span<const pollfd> entries) = 0;
};

/// Channel::wait for such a channel. `entries` is scratch, so that no wait allocates.
void wait_by_poll(PollableChannel& channel,
                  std::span<const Interest> interests,
                  Deadline deadline,
                  std::vector<pollfd>& entries);

}  // namespace peal::transport
