#include "peal/transport/liveness/beat.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"

namespace peal::transport {

std::string encode_beat(std::span<const Rank> stopped) {
  ByteWriter writer;
  for (const Rank rank : stopped.first(std::min(kMostStopped, stopped.size()))) {
    writer.put_i32(rank);
  }
  return std::move(writer).take();
}

std::vector<Rank> decode_beat(std::string_view body) {
  constexpr std::size_t kEach = sizeof(Rank);
  const std::size_t count = body.size() / kEach;
  if (count > kMostStopped) {
    throw Error(ErrorKind::kMismatch, fmt::format("malformed beat: {} stopped ranks", count));
  }
  ByteReader reader(body, "beat");
  std::vector<Rank> stopped;
  for (std::size_t i = 0; i < count; ++i) stopped.push_back(reader.get_i32());
  reader.finish();
  return stopped;
}

}  // namespace peal::transport
