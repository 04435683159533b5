// What can be wrong with messages, in words.
#pragma once

#include <string>

#include "peal/base/error.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/mailbox.h"

namespace peal::engine {

/// `peer` has left, or with kAnySource all others have, and what is open can never be delivered.
Error messages_from_gone(Rank self, Rank peer, const transport::Transport& transport);

/// The message `frame` meets a receive that expects another shape.
Error no_fit(Rank self, const Envelope& expected, Rank from, const MailFrame& frame);

/// The stream of `peer` cannot be trusted any more.
Error damaged(Rank peer, const std::string& how, const transport::Transport& transport);

}  // namespace peal::engine
