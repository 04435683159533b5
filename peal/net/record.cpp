#include "peal/net/record.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <zlib.h>

#include "peal/base/error.h"

namespace peal::net {
namespace {

constexpr auto kHead = static_cast<std::size_t>(kRecordHead.value);
constexpr auto kMost = static_cast<std::size_t>(kMostInRecord.value);

/// Continues the checksum `crc` over these bytes.
std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t crc) {
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  return static_cast<std::uint32_t>(::crc32_z(crc, data, bytes.size()));
}

template <class Unsigned>
void put(std::byte* at, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

std::uint32_t get_u32(const std::byte* at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= std::to_integer<std::uint32_t>(at[i]) << (8 * i);
  return value;
}

std::uint32_t head_check_of(std::uint64_t number, std::uint32_t length) {
  std::array<std::byte, sizeof number + sizeof length> text;
  put(text.data(), number);
  put(text.data() + sizeof number, length);
  return crc32_of(text, 0);
}

}  // namespace

std::span<const std::byte> RecordWriter::seal(Pieces& pieces) {
  if (pieces.empty()) return {};
  if (record_.empty()) record_.resize(kHead + kMost);
  const std::size_t length = pieces.take(std::span(record_).subspan(kHead));
  const std::span<const std::byte> record = std::span(record_).first(kHead + length);
  const std::uint32_t head_check = head_check_of(number_, static_cast<std::uint32_t>(length));
  put(record_.data(), static_cast<std::uint32_t>(length));
  put(record_.data() + 4, head_check);
  put(record_.data() + 8, crc32_of(record.subspan(kHead), head_check));
  ++number_;
  return record;
}

/// The head of the record at the front.
struct RecordReader::Head {
  explicit Head(const std::byte* at)
      : length(get_u32(at)), head_check(get_u32(at + 4)), check(get_u32(at + 8)) {}

  bool is_right(std::uint64_t number) const {
    return length >= 1 && length <= kMost && head_check == head_check_of(number, length);
  }

  std::uint32_t length;
  std::uint32_t head_check;
  std::uint32_t check;
};

std::span<std::byte> RecordReader::room() {
  if (buffer_.empty()) buffer_.resize(kHead + kMost);
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return std::span(buffer_).subspan(end_);
}

void RecordReader::has_come(std::size_t size) { end_ += size; }

std::size_t RecordReader::take(std::span<std::byte> into) {
  std::size_t taken = 0;
  while (taken < into.size() && (open_ > 0 || open_next())) {
    const std::size_t size = std::min(into.size() - taken, open_);
    std::memcpy(into.data() + taken, buffer_.data() + begin_, size);
    taken += size;
    begin_ += size;
    open_ -= size;
  }
  if (taken == 0 && !flaw_.empty()) {
    throw Error(ErrorKind::kPeerLost, fmt::format("record {} {}", number_, flaw_));
  }
  return taken;
}

bool RecordReader::has_some() const {
  if (open_ > 0 || !flaw_.empty()) return true;
  if (come().size() < kHead) return false;
  const Head head(come().data());
  return !head.is_right(number_) || come().size() >= kHead + head.length;
}

/// Opens the record at the front if it is complete and correct. Returns whether it did.
bool RecordReader::open_next() {
  if (!flaw_.empty() || come().size() < kHead) return false;
  const Head head(come().data());
  if (!head.is_right(number_)) {
    flaw_ = "has a wrong length or head check";
    return false;
  }
  if (come().size() < kHead + head.length) return false;
  if (crc32_of(come().subspan(kHead, head.length), head.head_check) != head.check) {
    flaw_ = "has a wrong checksum";
    return false;
  }
  begin_ += kHead;
  open_ = head.length;
  ++number_;
  return true;
}

}  // namespace peal::net
