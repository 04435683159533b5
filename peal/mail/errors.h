// The errors of messages.
#pragma once

#include <string>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/mail/eager_mail.h"
#include "peal/mail/frame.h"
#include "peal/mail/matching.h"
#include "peal/transport/transport.h"

namespace peal::mail {

/// `peer` has left, and open messages to or from it can never be delivered.
Error messages_from_gone(Rank self,
                         Rank peer,
                         Departure departure,
                         const transport::Transport& transport);

/// The same for a receive from any rank if all other ranks have left.
Error messages_from_all_gone(Rank self);

/// The message `frame` matches a receive that expects another type or count.
Error receive_mismatch(Rank self, const Receive& receive, Rank from, const Frame& frame);

/// Why a small message to `peer` is held back, as the end of a sentence. `unreceived`: the earlier
/// messages for which the peer has not given back credit.
std::string describe_held(Rank peer, const MessageCount& unreceived);

}  // namespace peal::mail
