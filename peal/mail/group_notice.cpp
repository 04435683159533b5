#include "peal/mail/group_notice.h"

#include <cstdint>

#include "peal/base/error_bytes.h"
#include "peal/base/serialize.h"

namespace peal::mail {
namespace {

GroupNotice notice(Frame::Kind kind, std::span<const std::byte> payload) {
  return {{.kind = kind, .payload = Bytes(std::ssize(payload))}, {payload.begin(), payload.end()}};
}

}  // namespace

GroupNotice failure_notice(const Error& cause) {
  ByteWriter writer;
  put(writer, cause);
  return notice(Frame::Kind::kAbort, bytes_of(writer.view()));
}

GroupNotice progress_notice(const engine::ProgressReport& report) {
  return notice(Frame::Kind::kProgressReport, report.encode());
}

GroupNotice departure_notice(Departure departure) {
  const auto byte = static_cast<std::byte>(departure);
  return notice(Frame::Kind::kLeave, {&byte, 1});
}

std::optional<Error> failure_in(std::span<const std::byte> payload) {
  try {
    ByteReader reader({reinterpret_cast<const char*>(payload.data()), payload.size()}, "failure");
    Error failure = get_error(reader);
    reader.finish();
    return failure;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<Departure> departure_in(std::span<const std::byte> payload) {
  if (payload.size() != 1) return std::nullopt;
  return Departure{static_cast<std::uint8_t>(payload.front())};
}

}  // namespace peal::mail
