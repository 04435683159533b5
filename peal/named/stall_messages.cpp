#include "peal/named/stall_messages.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "peal/base/serialize.h"

namespace peal::named {
namespace {

constexpr std::size_t kLongestPlace = 6000;

StallMessage padded(ByteWriter text) {
  const std::string bytes = std::move(text).take();
  StallMessage message(kStallMessageSize);
  std::ranges::copy(bytes, message.begin());
  return message;
}

ByteReader reader_of(const StallMessage& message) {
  return {std::string_view(reinterpret_cast<const char*>(message.data()), message.size()),
          "message about pending operations"};
}

}  // namespace

StallMessage message_of(const StallQuestion& question) {
  ByteWriter out;
  out.put_u64(question.number).put_u32(static_cast<std::uint32_t>(question.names.size()));
  for (const std::string& name : question.names) out.put_text(name);
  return padded(std::move(out));
}

StallQuestion question_in(const StallMessage& message) {
  ByteReader in = reader_of(message);
  StallQuestion question;
  question.number = in.get_u64();
  const std::size_t count = std::min<std::size_t>(in.get_u32(), kMostNamesOfQuestion);
  for (std::size_t i = 0; i < count; ++i) {
    question.names.emplace_back(
        in.get_text(Bytes(static_cast<std::int64_t>(kLongestNameOfQuestion))));
  }
  return question;
}

StallMessage message_of(const StallAnswer& answer) {
  ByteWriter out;
  out.put_u64(answer.number)
      .put_u64(answer.standing.has)
      .put_u8(static_cast<std::uint8_t>(answer.standing.join));
  return padded(std::move(out));
}

StallAnswer answer_in(const StallMessage& message) {
  ByteReader in = reader_of(message);
  StallAnswer answer;
  answer.number = in.get_u64();
  answer.standing.has = in.get_u64();
  if (in.get_u8() != 0) answer.standing.join = Standing::Join::kJoined;
  return answer;
}

StallMessage message_of(const StallPlace& place) {
  ByteWriter out;
  out.put_u64(place.number).put_text(place.text.substr(0, kLongestPlace));
  return padded(std::move(out));
}

StallPlace place_in(const StallMessage& message) {
  ByteReader in = reader_of(message);
  StallPlace place;
  place.number = in.get_u64();
  place.text = in.get_text(Bytes(static_cast<std::int64_t>(kLongestPlace)));
  return place;
}

}  // namespace peal::named
