// What can be wrong with messages, in words.
#pragma once

#include <string>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/engine/eager_mail.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/matching.h"
#include "peal/transport/transport.h"

namespace peal::engine {

/// `peer` has left, and what is open can never be delivered.
Error messages_from_gone(Rank self,
                         Rank peer,
                         Departure departure,
                         const transport::Transport& transport);

/// The same for a receive from any rank when all have left.
Error messages_from_all_gone(Rank self);

/// The message `frame` meets a receive that expects another shape.
Error no_fit(Rank self, const Envelope& expected, Rank from, const MailFrame& frame);

/// Why a small message to `peer` is held back, as the end of a sentence. `unreceived`: the messages
/// sent before it that the peer has not given back.
std::string describe_held(Rank peer, const MailCount& unreceived);

/// The stream of `peer` cannot be trusted any more.
Error damaged(Rank peer, const std::string& how, const transport::Transport& transport);

}  // namespace peal::engine
