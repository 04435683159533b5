#include "peal/bench/sizes.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/size_text.h"
#include "peal/base/split.h"

namespace peal::bench {
namespace {

constexpr Bytes kLargest{std::int64_t{1} << 40};

void add_range(const std::vector<std::string_view>& parts, std::vector<Bytes>& sizes) {
  const Bytes first = parse_size(parts[0]);
  const Bytes last = parse_size(parts[1]);
  const auto factor = parts.size() == 3 ? try_parse_number<std::int64_t>(parts[2]) : 4;
  if (!factor || *factor < 2) {
    throw Error(ErrorKind::kUsage,
                fmt::format("\"{}\" is not a step between sizes: pass 2 or more, as in 4:256M:2",
                            parts[2]));
  }
  if (first > last) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}:{} descends: the smaller size comes first", parts[0], parts[1]));
  }
  sizes.push_back(first);
  while (sizes.back() <= last / *factor) sizes.push_back(sizes.back() * *factor);
}

}  // namespace

Bytes parse_size(std::string_view text) {
  const auto size = try_parse_size(text);
  if (!size || *size < 1_B || *size > kLargest) {
    throw Error(ErrorKind::kUsage,
                fmt::format("\"{}\" is not a size: pass bytes, as in 4, 64K, 1M or 2G", text));
  }
  return *size;
}

std::vector<Bytes> parse_sizes(std::string_view text) {
  std::vector<Bytes> sizes;
  for (const std::string_view part : split(text, ',')) {
    const auto ends = split(part, ':');
    if (ends.size() > 3) {
      throw Error(
          ErrorKind::kUsage,
          fmt::format("\"{}\" is not a range of sizes: pass FROM:TO or FROM:TO:FACTOR", part));
    }
    if (ends.size() == 1) {
      sizes.push_back(parse_size(part));
    } else {
      add_range(ends, sizes);
    }
  }
  std::ranges::sort(sizes);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

std::vector<std::string> parse_list(std::string_view option, std::string_view text) {
  std::vector<std::string> parts;
  for (const std::string_view part : split(text, ',')) {
    if (part.empty()) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{} \"{}\": it takes names with a comma between them", option, text));
    }
    parts.emplace_back(part);
  }
  return parts;
}

}  // namespace peal::bench
