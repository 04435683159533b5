#include "peal/train/horovod/topology.h"

#include <algorithm>
#include <cstddef>

#include "peal/base/serialize.h"

namespace peal::hvd {
namespace {

constexpr Bytes kHostLimit = 64_KiB;

Rank local_rank_of(std::span<const Place> places, Rank rank) {
  const Place& place = places[static_cast<std::size_t>(rank)];
  if (place.local_rank != Place::kUnknown) return place.local_rank;
  const auto before = places.first(static_cast<std::size_t>(rank));
  return static_cast<Rank>(std::ranges::count(before, place.host, &Place::host));
}

int local_size_of(std::span<const Place> places, const Place& place) {
  if (place.local_size != Place::kUnknown) return place.local_size;
  return static_cast<int>(std::ranges::count(places, place.host, &Place::host));
}

}  // namespace

std::string to_text(const Place& place) {
  ByteWriter writer;
  writer.put_text(place.host).put_i32(place.local_rank).put_i32(place.local_size);
  writer.put_i32(place.cross_rank).put_i32(place.cross_size);
  return std::move(writer).take();
}

Place place_from(std::string_view text) {
  ByteReader reader(text, "place of a rank");
  Place place;
  place.host = reader.get_text(kHostLimit);
  place.local_rank = reader.get_i32();
  place.local_size = reader.get_i32();
  place.cross_rank = reader.get_i32();
  place.cross_size = reader.get_i32();
  reader.finish();
  return place;
}

Topology topology_of(std::span<const Place> places, Rank rank) {
  const Place& own = places[static_cast<std::size_t>(rank)];
  Topology topology;
  topology.local_rank = local_rank_of(places, rank);
  topology.local_size = local_size_of(places, own);
  topology.cross_size = 0;
  for (Rank other = 0; other < static_cast<Rank>(places.size()); ++other) {
    if (local_rank_of(places, other) != topology.local_rank) continue;
    if (other < rank) ++topology.cross_rank;
    ++topology.cross_size;
  }
  if (own.cross_rank != Place::kUnknown) topology.cross_rank = own.cross_rank;
  if (own.cross_size != Place::kUnknown) topology.cross_size = own.cross_size;
  topology.is_homogeneous = std::ranges::all_of(places, [&](const Place& other) {
    return local_size_of(places, other) == topology.local_size;
  });
  return topology;
}

}  // namespace peal::hvd
