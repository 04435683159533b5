// The frames of the mail channel: what can be decoded is what `encode` makes, and promises no more
// bytes than a mailbox takes, and no more than it can count.
#include "peal/engine/mail_frame.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  using engine::MailFrame;
  if (input.size() < MailFrame::kSize) return;
  std::array<std::byte, MailFrame::kSize> bytes;
  std::transform(input.begin(), input.begin() + MailFrame::kSize, bytes.begin(), [](char c) {
    return static_cast<std::byte>(c);
  });
  const auto frame = MailFrame::decode(bytes);
  if (!frame) return;
  require(frame->encode() == bytes, "the frame's bytes");
  require(frame->payload <= engine::kDataPiece, "the payload's limit");
  if (frame->kind == MailFrame::Kind::kCredit) {
    require(frame->count > Elements(0) && frame->id <= INT64_MAX, "what was received");
  }
}
