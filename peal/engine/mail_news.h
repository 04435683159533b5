// What ranks tell each other of the group itself, as frames of the mail channel: that it has
// failed, where one stands that waits, that one leaves. Written and read by Mailbox.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/engine/mail_frame.h"
#include "peal/engine/standing.h"

namespace peal::engine {

struct MailNews {
  MailFrame frame;
  std::vector<std::byte> payload;
};

/// Of `cause` as much text as a frame may have.
MailNews news_of_failure(const Error& cause);
MailNews news_of_standing(const Standing& standing);
MailNews news_of_departure(Departure departure);

/// The cause in a frame of kind kAbort; of kind bug where no kind has its number.
Error failure_in(const MailFrame& frame, std::span<const std::byte> payload);

}  // namespace peal::engine
