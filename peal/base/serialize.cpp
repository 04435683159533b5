#include "peal/base/serialize.h"

#include <limits>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal {

ByteWriter& ByteWriter::put_text(std::string_view text) {
  if (text.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("a text of {} bytes does not fit into a message", text.size()));
  }
  put_u32(static_cast<std::uint32_t>(text.size()));
  return put_raw(text);
}

ByteWriter& ByteWriter::put_raw(std::string_view bytes) {
  bytes_.append(bytes);
  return *this;
}

std::string_view ByteReader::get_text(Bytes limit) {
  const Bytes size(get_u32());
  if (size > limit) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("malformed {}: a text of {} bytes where at most {} are allowed",
                            what_,
                            size.value,
                            limit.value));
  }
  return get_raw(size);
}

std::string_view ByteReader::get_raw(Bytes count) {
  const auto wanted = static_cast<std::size_t>(count.value);
  if (wanted > bytes_.size()) {
    throw Error(
        ErrorKind::kMismatch,
        fmt::format("malformed {}: it ends {} bytes too early", what_, wanted - bytes_.size()));
  }
  const std::string_view result = bytes_.substr(0, wanted);
  bytes_.remove_prefix(wanted);
  return result;
}

void ByteReader::finish() const {
  if (!bytes_.empty()) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("malformed {}: unexpected bytes at its end: {}", what_, bytes_.size()));
  }
}

}  // namespace peal
