#include "peal/rendezvous/elastic_protocol.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/serialize.h"

namespace peal::rendezvous {
namespace {

constexpr Bytes kMaxName = 1_KiB;
constexpr Bytes kMaxPath = 8_KiB;
constexpr Bytes kMaxReason = 64_KiB;

Error malformed(std::string_view what) {
  return Error(ErrorKind::kMismatch, fmt::format("malformed {} of an elastic job", what));
}

void put(ByteWriter& writer, const ElasticAssignment& place) {
  for (const int number : {place.round,
                           place.rank,
                           place.size,
                           place.local_rank,
                           place.local_size,
                           place.cross_rank,
                           place.cross_size,
                           place.slot}) {
    writer.put_i32(number);
  }
  writer.put_text(place.hostname).put_text(place.records);
}

ElasticAssignment get_place(ByteReader& reader) {
  ElasticAssignment place;
  for (int* const number : {&place.round,
                            &place.rank,
                            &place.size,
                            &place.local_rank,
                            &place.local_size,
                            &place.cross_rank,
                            &place.cross_size,
                            &place.slot}) {
    *number = reader.get_i32();
  }
  place.hostname = reader.get_text(kMaxName);
  place.records = reader.get_text(kMaxPath);
  return place;
}

}  // namespace

net::ProofContext elastic_proof_context(const Config& config, const std::string& job) {
  return {config.secret, job, "elastic", link_protection_of(config)};
}

std::string ElasticRequest::encode() const {
  ByteWriter writer;
  writer.put_u8(static_cast<std::uint8_t>(kind)).put_i32(worker).put_i64(number);
  return std::move(writer).take();
}

ElasticRequest ElasticRequest::decode(std::string_view bytes) {
  ByteReader reader(bytes, "request of an elastic job");
  ElasticRequest request;
  request.kind = static_cast<Kind>(reader.get_u8());
  request.worker = reader.get_i32();
  request.number = reader.get_i64();
  reader.finish();
  if (request.kind < Kind::kNextRound || request.kind > Kind::kStop) throw malformed("request");
  return request;
}

std::string ElasticAnswer::encode() const {
  ByteWriter writer;
  writer.put_u8(static_cast<std::uint8_t>(kind));
  put(writer, place);
  writer.put_text(reason);
  return std::move(writer).take();
}

ElasticAnswer ElasticAnswer::decode(std::string_view bytes) {
  ByteReader reader(bytes, "answer of an elastic job");
  ElasticAnswer answer;
  answer.kind = static_cast<Kind>(reader.get_u8());
  answer.place = get_place(reader);
  answer.reason = reader.get_text(kMaxReason);
  reader.finish();
  if (answer.kind < Kind::kPlace || answer.kind > Kind::kOver) throw malformed("answer");
  return answer;
}

std::string request_key(std::int64_t index) { return fmt::format("request/{}", index); }

std::string answer_key(int worker, std::int64_t number) {
  return fmt::format("answer/{}/{}", worker, number);
}

std::string changes_key(int round) { return fmt::format("changes/{}", round); }

std::string round_prefix(int round) { return fmt::format("round/{}", round); }

std::string encode(HostChanges changes) { return fmt::format("{}", static_cast<int>(changes)); }

HostChanges decode_changes(std::string_view text) {
  const auto number = try_parse_number<int>(text);
  if (!number || *number < 0 || *number > static_cast<int>(HostChanges::kBoth)) {
    throw malformed("change of hosts");
  }
  return static_cast<HostChanges>(*number);
}

void post(store::Store& store, const ElasticRequest& request) {
  const std::string text = request.encode();
  const auto begin = store.try_get(kNextRequestKey);
  std::int64_t index = begin ? try_parse_number<std::int64_t>(*begin).value_or(0) : 0;
  while (store.compare_set(request_key(index), "", text) != text) ++index;
}

}  // namespace peal::rendezvous
