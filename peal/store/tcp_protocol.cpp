#include "peal/store/tcp_protocol.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"
#include "peal/store/table.h"

namespace peal::store {
namespace {

void put_texts(ByteWriter& writer, const std::vector<std::string>& texts) {
  writer.put_u32(static_cast<std::uint32_t>(texts.size()));
  for (const std::string& text : texts) writer.put_text(text);
}

std::vector<std::string> get_texts(ByteReader& reader, Bytes limit) {
  std::vector<std::string> texts;
  const std::uint32_t count = reader.get_u32();
  for (std::uint32_t i = 0; i < count; ++i) texts.emplace_back(reader.get_text(limit));
  return texts;
}

struct Put {
  ByteWriter& writer;

  void operator()(const SetRequest& r) { writer.put_text(r.key).put_text(r.value); }
  void operator()(const TryGetRequest& r) { writer.put_text(r.key); }
  void operator()(const AddRequest& r) { writer.put_text(r.key).put_i64(r.amount); }
  void operator()(const CompareSetRequest& r) {
    writer.put_text(r.key).put_text(r.expected).put_text(r.desired);
  }
  void operator()(const AwaitRequest& r) {
    put_texts(writer, r.keys);
    writer.put_i64(r.timeout.count());
  }
  void operator()(const EraseRequest& r) { writer.put_text(r.key); }
  void operator()(const WillRequest& r) { writer.put_text(r.key).put_text(r.value); }
  void operator()(const TryGetAllRequest& r) { put_texts(writer, r.keys); }
};

Request get_request(ByteReader& reader) {
  const std::uint8_t index = reader.get_u8();
  const auto key = [&] { return std::string(reader.get_text(kMaxKey)); };
  const auto value = [&] { return std::string(reader.get_text(kMaxValue)); };
  switch (index) {  // braces evaluate from left to right
    case 0:
      return SetRequest{key(), value()};
    case 1:
      return TryGetRequest{key()};
    case 2:
      return AddRequest{key(), reader.get_i64()};
    case 3:
      return CompareSetRequest{key(), value(), value()};
    case 4:
      return AwaitRequest{get_texts(reader, kMaxKey), Timeout(reader.get_i64())};
    case 5:
      return EraseRequest{key()};
    case 6:
      return WillRequest{key(), value()};
    case 7:
      return TryGetAllRequest{get_texts(reader, kMaxKey)};
  }
  throw Error(ErrorKind::kMismatch, fmt::format("malformed store request: kind {}", index));
}

}  // namespace

std::string encode(const Request& request) {
  ByteWriter writer;
  writer.put_u8(static_cast<std::uint8_t>(request.index()));
  std::visit(Put{writer}, request);
  return std::move(writer).take();
}

std::string encode(const Reply& reply) {
  ByteWriter writer;
  writer.put_u8(static_cast<std::uint8_t>(reply.outcome));
  put_texts(writer, reply.texts);
  return std::move(writer).take();
}

Request decode_request(std::string_view bytes) {
  ByteReader reader(bytes, "store request");
  Request request = get_request(reader);
  reader.finish();
  return request;
}

Reply decode_reply(std::string_view bytes) {
  ByteReader reader(bytes, "store reply");
  Reply reply;
  const std::uint8_t outcome = reader.get_u8();
  if (outcome > static_cast<std::uint8_t>(Outcome::kRefused)) {
    throw Error(ErrorKind::kMismatch, fmt::format("malformed store reply: outcome {}", outcome));
  }
  reply.outcome = static_cast<Outcome>(outcome);
  reply.texts = get_texts(reader, kMaxValue);
  reader.finish();
  return reply;
}

}  // namespace peal::store
