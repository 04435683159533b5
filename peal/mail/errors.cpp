#include "peal/mail/errors.h"

#include <fmt/format.h>

namespace peal::mail {

Error messages_from_gone(Rank self,
                         Rank peer,
                         Departure departure,
                         const transport::Transport& transport) {
  return Error(ErrorKind::kPeerLost,
               fmt::format("rank {} ({}) {}, and open messages between it and rank {} can never "
                           "be delivered",
                           peer,
                           transport.describe(peer),
                           describe(departure),
                           self));
}

Error messages_from_all_gone(Rank self) {
  return Error(ErrorKind::kPeerLost,
               fmt::format("all other ranks have left the group, and rank {} waits for a message "
                           "from any of them",
                           self));
}

Error receive_mismatch(Rank self, const Receive& receive, Rank from, const Frame& frame) {
  const Envelope& expected = receive.envelope;
  return Error(ErrorKind::kMismatch,
               fmt::format("rank {} sent {} {} with tag {} to rank {}, whose receive expects {} {}",
                           from,
                           frame.count.value,
                           name_of(frame.dtype),
                           frame.tag.value,
                           self,
                           expected.count.value,
                           name_of(expected.dtype)),
               {.operation = receive.ticket->what(), .cause = ErrorCause::kMismatch});
}

std::string describe_held(Rank peer, const MessageCount& unreceived) {
  return fmt::format(
      "; it is held back, since up to {} messages to rank {} before it ({:.1f} MiB) "
      "wait for their receives",
      unreceived.messages,
      peer,
      static_cast<double>(unreceived.bytes.value) / (1 << 20));
}

}  // namespace peal::mail
