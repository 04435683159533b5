#include "peal/engine/mail_news.h"

#include <string>
#include <string_view>

namespace peal::engine {

MailNews news_of_failure(const Error& cause) {
  const std::string_view text =
      cause.message().substr(0, static_cast<std::size_t>(kAbortLimit.value));
  const auto bytes = std::as_bytes(std::span(text));
  return {{.kind = MailFrame::Kind::kAbort,
           .dtype = static_cast<std::uint8_t>(cause.kind()),
           .payload = Bytes(static_cast<std::int64_t>(bytes.size()))},
          {bytes.begin(), bytes.end()}};
}

MailNews news_of_standing(const Standing& standing) {
  const auto bytes = standing.encode();
  return {{.kind = MailFrame::Kind::kStanding, .payload = Bytes(bytes.size())},
          {bytes.begin(), bytes.end()}};
}

MailNews news_of_departure(Departure departure) {
  return {{.kind = MailFrame::Kind::kFarewell, .dtype = static_cast<std::uint8_t>(departure)}, {}};
}

Error failure_in(const MailFrame& frame, std::span<const std::byte> payload) {
  return Error(error_kind_of(frame.dtype).value_or(ErrorKind::kBug),
               std::string(reinterpret_cast<const char*>(payload.data()), payload.size()));
}

}  // namespace peal::engine
