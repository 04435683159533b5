#include "peal/base/error_bytes.h"

#include <cstdint>
#include <string_view>
#include <utility>

namespace peal {
namespace {

constexpr Bytes kMessageLimit = 2_KiB;
constexpr Bytes kReasonLimit = 1_KiB;
constexpr Bytes kNameLimit = 256_B;  // of a host or an operation
constexpr std::int32_t kNoRank = -1;

// All texts with their lengths, the kind, the cause and the rank must fit.
static_assert(kMessageLimit + kReasonLimit + kNameLimit * 2 + 32_B <= kErrorLimit);

void put(ByteWriter& writer, std::string_view text, Bytes limit) {
  writer.put_text(text.substr(0, static_cast<std::size_t>(limit.value)));
}

}  // namespace

void put(ByteWriter& writer, const Error& error) {
  const ErrorDetails& details = error.details();
  writer.put_u8(static_cast<std::uint8_t>(error.kind()));
  writer.put_u8(static_cast<std::uint8_t>(details.cause));
  writer.put_i32(details.rank.value_or(kNoRank));
  put(writer, error.message(), kMessageLimit);
  put(writer, details.reason, kReasonLimit);
  put(writer, details.host, kNameLimit);
  put(writer, details.operation, kNameLimit);
}

Error get_error(ByteReader& reader) {
  const ErrorKind kind = error_kind_of(reader.get_u8()).value_or(ErrorKind::kBug);
  ErrorDetails details;
  details.cause = error_cause_of(reader.get_u8()).value_or(ErrorCause::kUnknown);
  const Rank rank = reader.get_i32();
  if (rank >= 0) details.rank = rank;
  const std::string message(reader.get_text(kMessageLimit));
  details.reason = reader.get_text(kReasonLimit);
  details.host = reader.get_text(kNameLimit);
  details.operation = reader.get_text(kNameLimit);
  return Error(kind, message, std::move(details));
}

}  // namespace peal
