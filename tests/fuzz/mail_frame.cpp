// The frames of the mail channel: every input that can be decoded equals the output of `encode`. It
// announces no more bytes than a mailbox accepts and can count.
#include <algorithm>

#include "peal/mail/frame.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  using mail::Frame;
  if (input.size() < Frame::kSize) return;
  std::array<std::byte, Frame::kSize> bytes;
  std::transform(input.begin(), input.begin() + Frame::kSize, bytes.begin(), [](char c) {
    return static_cast<std::byte>(c);
  });
  const auto frame = Frame::decode(bytes);
  if (!frame) return;
  require(frame->encode() == bytes, "the frame's bytes");
  require(frame->payload <= mail::kDataPiece, "the payload's limit");
  if (frame->kind == Frame::Kind::kCredit) {
    require(frame->count > Elements(0) && frame->id <= INT64_MAX, "what was received");
  }
}
