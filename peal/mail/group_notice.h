// Notifications between ranks about the group, as frames of the mail channel: the group has failed,
// a rank waits, a rank leaves. Used by Mailbox.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "peal/base/departure.h"
#include "peal/base/error.h"
#include "peal/engine/progress_report.h"
#include "peal/mail/frame.h"

namespace peal::mail {

struct GroupNotice {
  Frame frame;
  std::vector<std::byte> payload;
};

GroupNotice failure_notice(const Error& cause);
GroupNotice progress_notice(const engine::ProgressReport& report);
GroupNotice departure_notice(Departure departure);

/// The error in the payload of a kAbort. Nothing if the bytes are not an error.
std::optional<Error> failure_in(std::span<const std::byte> payload);
/// The departure in the payload of a kLeave, which is one byte. Departures that this version does
/// not know stay as they are. Nothing if there is not one byte.
std::optional<Departure> departure_in(std::span<const std::byte> payload);

}  // namespace peal::mail
