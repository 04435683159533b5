#include "peal/train/checkpoint/sharing.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "peal/base/error.h"
#include "peal/base/serialize.h"

namespace peal::train {
namespace {

/// Where one part is: the ranks that have it, and its index in the list of each.
struct Place {
  std::size_t rank = 0;
  std::size_t index = 0;
};

struct Item {
  const OfferedPart* part = nullptr;
  std::vector<Place> places = {};
};

/// One tensor: its parts by box. The map's order is the same on every rank.
struct Whole {
  const OfferedPart* first = nullptr;
  std::size_t first_rank = 0;
  std::map<Box, Item> items = {};
};

using Wholes = std::map<std::pair<std::string, std::string>, Whole>;  // by file and name

Error differs(const OfferedPart& part, const std::string& what) {
  return Error(ErrorKind::kMismatch,
               "the ranks cannot save the tensor \"" + part.name + "\" of " + part.file +
                   " together: " + what);
}

Wholes collect(const std::vector<OfferedParts>& ranks) {
  Wholes wholes;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t index = 0; index < ranks[rank].size(); ++index) {
      const OfferedPart& part = ranks[rank][index];
      const auto [entry, is_new] = wholes.try_emplace({part.file, part.name});
      Whole& whole = entry->second;
      if (is_new) {
        whole.first = &part;
        whole.first_rank = rank;
      } else if (part.type != whole.first->type || part.shape != whole.first->shape) {
        throw differs(part,
                      "its type or shape on rank " + std::to_string(rank) +
                          " is not that on rank " + std::to_string(whole.first_rank));
      }
      Item& item = whole.items[part.box];
      item.part = &part;
      item.places.push_back({rank, index});
    }
  }
  return wholes;
}

void check(const Whole& whole) {
  std::vector<Box> boxes;
  for (const auto& [box, item] : whole.items) boxes.push_back(box);
  const std::string reason = why_not_divided(whole.first->shape, boxes);
  if (!reason.empty()) throw differs(*whole.first, reason);
}

}  // namespace

SharingPlan share_out(const std::vector<OfferedParts>& ranks) {
  const Wholes wholes = collect(ranks);
  SharingPlan plan;
  plan.writes.resize(ranks.size());
  std::vector<const Item*> items;
  for (const auto& [name, whole] : wholes) {
    check(whole);
    ++plan.tensors[name.first];
    for (const auto& [box, item] : whole.items) items.push_back(&item);
  }
  std::ranges::stable_sort(
      items, std::greater<>(), [](const Item* item) { return item->part->size; });
  std::vector<Bytes> load(ranks.size());
  for (const Item* item : items) {
    const Place& place = *std::ranges::min_element(
        item->places, {}, [&](const Place& one) { return std::pair(load[one.rank], one.rank); });
    load[place.rank] += item->part->size;
    plan.writes[place.rank].push_back(place.index);
  }
  return plan;
}

std::string encode(const OfferedParts& parts) {
  ByteWriter writer;
  writer.put_u64(parts.size());
  const auto put_list = [&](const std::vector<std::int64_t>& list) {
    writer.put_u32(static_cast<std::uint32_t>(list.size()));
    for (const std::int64_t number : list) writer.put_i64(number);
  };
  for (const OfferedPart& part : parts) {
    writer.put_text(part.file).put_text(part.name).put_text(part.type).put_i64(part.size.value);
    put_list(part.shape);
    put_list(part.box.offsets);
    put_list(part.box.sizes);
  }
  return std::move(writer).take();
}

OfferedParts decode_offered_parts(std::string_view bytes) {
  constexpr Bytes kLongest(std::numeric_limits<std::int32_t>::max());
  ByteReader reader(bytes, "list of tensors");
  const auto get_list = [&] {
    std::vector<std::int64_t> list;
    for (std::uint32_t left = reader.get_u32(); left > 0; --left) list.push_back(reader.get_i64());
    return list;
  };
  OfferedParts parts;
  for (std::uint64_t left = reader.get_u64(); left > 0; --left) {
    OfferedPart& part = parts.emplace_back();
    part.file = reader.get_text(kLongest);
    part.name = reader.get_text(kLongest);
    part.type = reader.get_text(kLongest);
    part.size = Bytes(reader.get_i64());
    part.shape = get_list();
    part.box.offsets = get_list();
    part.box.sizes = get_list();
  }
  reader.finish();
  return parts;
}

}  // namespace peal::train
