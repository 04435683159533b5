#include "peal/transport/pollable.h"

#include "peal/net/socket.h"

namespace peal::transport {

void wait_by_poll(PollableChannel& channel,
                  std::span<const Interest> interests,
                  Deadline deadline,
                  std::vector<pollfd>& entries) {
  entries.clear();
  if (channel.prepare(interests, entries)) net::poll_until(entries, deadline);
  channel.finish(entries);
}

}  // namespace peal::transport
