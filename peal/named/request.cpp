#include "peal/named/request.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"

namespace peal::named {
namespace {

constexpr std::uint32_t kMostDimensions = 64;

bool first_dimension_may_differ(Kind kind) {
  return kind == Kind::kAllGather || kind == Kind::kAllToAll;
}

bool shapes_agree(const Request& a, const Request& b) {
  if (!first_dimension_may_differ(a.kind)) return a.shape == b.shape;
  if (a.shape.empty() || b.shape.empty()) return a.shape.size() == b.shape.size();
  return std::equal(a.shape.begin() + 1, a.shape.end(), b.shape.begin() + 1, b.shape.end());
}

/// A property of which all ranks must have the same value.
struct Property {
  std::string_view name;
  bool (*same)(const Request&, const Request&);
  std::string (*text)(const Request&);
};

constexpr std::array kProperties = {
    Property{"operations",
             [](const Request& a, const Request& b) { return a.kind == b.kind; },
             [](const Request& r) { return std::string(capitals_of(r.kind)); }},
    Property{"data types",
             [](const Request& a, const Request& b) { return a.dtype == b.dtype; },
             [](const Request& r) { return std::string(name_of(r.dtype)); }},
    Property{"shapes",
             shapes_agree,
             [](const Request& r) { return fmt::format("[{}]", fmt::join(r.shape, ", ")); }},
    Property{"reduction operations",
             [](const Request& a, const Request& b) { return a.reduction == b.reduction; },
             [](const Request& r) { return std::string(name_of(r.reduction)); }},
    Property{"root ranks",
             [](const Request& a, const Request& b) { return a.root == b.root; },
             [](const Request& r) { return fmt::format("root {}", r.root); }},
    Property{"prescale and postscale factors",
             [](const Request& a, const Request& b) {
               return a.prescale == b.prescale && a.postscale == b.postscale;
             },
             [](const Request& r) { return fmt::format("{} and {}", r.prescale, r.postscale); }},
    Property{"groups",
             [](const Request& a, const Request& b) {
               return a.group == b.group && a.group_size == b.group_size;
             },
             [](const Request& r) {
               if (r.group.empty()) return std::string("no group");
               return fmt::format("group \"{}\" of {}", r.group, r.group_size);
             }},
    Property{"arguments",
             [](const Request& a, const Request& b) { return a.detail == b.detail; },
             [](const Request& r) { return r.detail; }},
};

/// In the order of their first rank.
std::vector<Side> sides_of(const Property& property,
                           std::span<const Request* const> requests,
                           std::span<const Rank> global_ranks) {
  std::vector<Side> sides;
  std::vector<const Request*> firsts;  // of the sides
  for (std::size_t rank = 0; rank < requests.size(); ++rank) {
    const Request* const request = requests[rank];
    if (request == nullptr) continue;
    const auto same = std::ranges::find_if(
        firsts, [&](const Request* first) { return property.same(*first, *request); });
    if (same == firsts.end()) {
      firsts.push_back(request);
      sides.push_back({property.text(*request), {global_ranks[rank]}});
    } else {
      sides[static_cast<std::size_t>(same - firsts.begin())].ranks.push_back(global_ranks[rank]);
    }
  }
  return sides;
}

template <class Enum>
Enum read_enum(ByteReader& in, Enum last) {
  const std::uint8_t number = in.get_u8();
  if (number > static_cast<std::uint8_t>(last)) {
    throw Error(ErrorKind::kMismatch, "a request for an operation by name is malformed");
  }
  return static_cast<Enum>(number);
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "allreduce";
    case Kind::kAllGather:
      return "allgather";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kAllToAll:
      return "alltoall";
    case Kind::kReduceScatter:
      return "reducescatter";
    case Kind::kBarrier:
      return "barrier";
    case Kind::kAgreement:
      return "agreement";
  }
  return "invalid";
}

std::string_view capitals_of(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "ALLREDUCE";
    case Kind::kAllGather:
      return "ALLGATHER";
    case Kind::kBroadcast:
      return "BROADCAST";
    case Kind::kAllToAll:
      return "ALLTOALL";
    case Kind::kReduceScatter:
      return "REDUCESCATTER";
    case Kind::kBarrier:
      return "BARRIER";
    case Kind::kAgreement:
      return "AGREEMENT";
  }
  return "INVALID";
}

std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::kAverage:
      return "Average";
    case Reduction::kSum:
      return "Sum";
    case Reduction::kMin:
      return "Min";
    case Reduction::kMax:
      return "Max";
    case Reduction::kProduct:
      return "Product";
    case Reduction::kAdasum:
      return "Adasum";
  }
  return "invalid";
}

Elements elements_of(const Request& request) {
  return Elements(std::accumulate(
      request.shape.begin(), request.shape.end(), std::int64_t{1}, std::multiplies<>()));
}

Elements row_elements_of(const Request& request) {
  if (request.shape.empty()) return Elements(1);
  return Elements(std::accumulate(
      request.shape.begin() + 1, request.shape.end(), std::int64_t{1}, std::multiplies<>()));
}

std::int64_t rows_of(const Request& request) {
  return request.shape.empty() ? 1 : request.shape.front();
}

Bytes bytes_of(const Request& request) {
  return peal::bytes_of(elements_of(request), request.dtype);
}

std::string describe(const Request& request) {
  const std::string_view name = request.name;
  const std::size_t dot = name.find('.');
  const std::string_view prefix = name.substr(0, dot);
  if (dot != std::string_view::npos && prefix.ends_with(name_of(request.kind))) {
    return fmt::format("{} \"{}\"", prefix, name.substr(dot + 1));
  }
  return fmt::format("{} \"{}\"", name_of(request.kind), name);
}

bool agree(const Request& a, const Request& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.reduction == b.reduction && a.root == b.root &&
         a.prescale == b.prescale && a.postscale == b.postscale && a.group_size == b.group_size &&
         shapes_agree(a, b) && a.group == b.group && a.detail == b.detail;
}

std::string ranks_text(std::span<const Rank> ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format(
      "ranks {} and {}", fmt::join(ranks.first(ranks.size() - 1), ", "), ranks.back());
}

std::string sides_text(std::span<const Side> sides) {
  std::string text;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    const bool is_last = i + 1 == sides.size();
    const char* const separator = i == 0 ? "" : !is_last ? ", " : i == 1 ? ", but " : ", and ";
    text += fmt::format("{}{} {} {}",
                        separator,
                        ranks_text(sides[i].ranks),
                        sides[i].ranks.size() == 1 ? "has" : "have",
                        sides[i].value);
  }
  return text;
}

std::string difference(std::span<const Request* const> requests,
                       std::span<const Rank> global_ranks) {
  const auto first =
      std::ranges::find_if(requests, [](auto* request) { return request != nullptr; });
  for (const Property& property : kProperties) {
    const std::vector<Side> sides = sides_of(property, requests, global_ranks);
    if (sides.size() < 2) continue;
    return fmt::format("Mismatched {} of {}: {}", property.name, (*first)->name, sides_text(sides));
  }
  return {};
}

void write(const Request& request, ByteWriter& out) {
  out.put_text(request.name)
      .put_u8(static_cast<std::uint8_t>(request.kind))
      .put_u8(static_cast<std::uint8_t>(request.dtype))
      .put_u8(static_cast<std::uint8_t>(request.reduction))
      .put_i32(request.root)
      .put_u64(std::bit_cast<std::uint64_t>(request.prescale))
      .put_u64(std::bit_cast<std::uint64_t>(request.postscale))
      .put_text(request.group)
      .put_i32(request.group_size)
      .put_text(request.detail)
      .put_u8(request.remembered ? 1 : 0)
      .put_u32(static_cast<std::uint32_t>(request.shape.size()));
  for (const std::int64_t dimension : request.shape) out.put_i64(dimension);
}

Request read_request(ByteReader& in) {
  Request request;
  request.name = in.get_text(kLongestText);
  request.kind = read_enum(in, Kind::kAgreement);
  request.dtype = read_enum(in, DType::kC128);
  request.reduction = read_enum(in, Reduction::kAdasum);
  request.root = in.get_i32();
  request.prescale = std::bit_cast<double>(in.get_u64());
  request.postscale = std::bit_cast<double>(in.get_u64());
  request.group = in.get_text(kLongestText);
  request.group_size = in.get_i32();
  request.detail = in.get_text(kLongestText);
  request.remembered = in.get_u8() != 0;
  const std::uint32_t dimensions = in.get_u32();
  if (dimensions > kMostDimensions) {
    throw Error(ErrorKind::kMismatch, "a request for an operation by name is malformed");
  }
  for (std::uint32_t i = 0; i < dimensions; ++i) request.shape.push_back(in.get_i64());
  return request;
}

}  // namespace peal::named
