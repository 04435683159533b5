#include "peal/engine/mail_errors.h"

#include <fmt/format.h>

namespace peal::engine {

Error messages_from_gone(Rank self,
                         Rank peer,
                         Departure departure,
                         const transport::Transport& transport) {
  return Error(ErrorKind::kPeerLost,
               fmt::format("rank {} ({}) {}, and rank {} has messages to or from it that can never "
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

Error no_fit(Rank self, const Envelope& expected, Rank from, const MailFrame& frame) {
  return Error(ErrorKind::kMismatch,
               fmt::format("rank {} sent {} {} with tag {} to rank {}, whose receive expects {} {}",
                           from,
                           frame.count.value,
                           name_of(DType{frame.dtype}),
                           frame.tag.value,
                           self,
                           expected.count.value,
                           name_of(expected.dtype)));
}

std::string describe_held(Rank peer, const MailCount& unreceived) {
  return fmt::format(
      "; it is held back, since up to {} messages to rank {} before it ({:.1f} MiB) "
      "wait for their receives",
      unreceived.messages,
      peer,
      static_cast<double>(unreceived.bytes.value) / (1 << 20));
}

Error damaged(Rank peer, const std::string& how, const transport::Transport& transport) {
  return Error(
      ErrorKind::kPeerLost,
      fmt::format("the link to rank {} ({}) is damaged: {}", peer, transport.describe(peer), how));
}

}  // namespace peal::engine
