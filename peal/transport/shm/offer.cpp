#include "peal/transport/shm/offer.h"

#include <limits>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"

namespace peal::transport {
namespace {

constexpr std::uint8_t kVersion = 2;

}  // namespace

std::string encode(const Offer& offer) {
  ByteWriter writer;
  writer.put_u8(kVersion).put_i64(offer.layout.ranks).put_i64(offer.layout.data_ring.value);
  writer.put_i64(offer.layout.mail_ring.value).put_i64(offer.layout.stage.value);
  writer.put_i64(offer.arena.value).put_u64(offer.process);
  writer.put_u8(offer.needs_connection ? 1 : 0);
  return std::move(writer).take();
}

Offer decode_offer(std::string_view bytes) {
  ByteReader reader(bytes, "offer of shared memory");
  if (reader.get_u8() != kVersion) {
    throw Error(ErrorKind::kMismatch,
                "it runs another version of peal: run the same peal on all ranks");
  }
  const std::int64_t ranks = reader.get_i64();
  if (ranks < 1 || ranks > std::numeric_limits<int>::max()) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("malformed offer of shared memory: {} ranks", ranks));
  }
  Offer offer;
  offer.layout.ranks = static_cast<int>(ranks);
  offer.layout.data_ring = Bytes(reader.get_i64());
  offer.layout.mail_ring = Bytes(reader.get_i64());
  offer.layout.stage = Bytes(reader.get_i64());
  offer.arena = Bytes(reader.get_i64());
  offer.process = reader.get_u64();
  const std::uint8_t needs_connection = reader.get_u8();
  if (needs_connection > 1) {
    throw Error(ErrorKind::kMismatch,
                fmt::format("malformed offer of shared memory: a flag is {}", needs_connection));
  }
  offer.needs_connection = needs_connection == 1;
  reader.finish();
  return offer;
}

}  // namespace peal::transport
