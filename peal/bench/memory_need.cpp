#include "peal/bench/memory_need.h"

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::bench {
namespace {

std::string in_gibibytes(Bytes size) {
  return fmt::format("{:.1f} GiB", static_cast<double>(size.value) / (1 << 30));
}

}  // namespace

Bytes buffers_of(const Case& c) {
  Bytes all;
  for (Rank rank = 0; rank < c.ranks; ++rank) {
    const Bytes in = peal::bytes_of(input_count(c, rank), c.dtype);
    const Bytes out = peal::bytes_of(output_count(c, rank), c.dtype);
    const bool is_one = placement(c, rank).sharing == Sharing::kOneMemory;
    all += is_one ? std::max(in, out) : in + out;
  }
  return all;
}

void check_memory(const Case& c, const std::vector<Holder>& holders, Bytes available) {
  Bytes all;
  std::string shares;
  for (const Holder& holder : holders) {
    all += holder.size;
    const char* const comma = shares.empty() ? "" : ", ";
    shares += fmt::format("{}{} {}", comma, holder.name, in_gibibytes(holder.size));
  }
  if (all <= available) return;
  throw Error(ErrorKind::kUsage,
              fmt::format("{} takes {} of memory for the buffers of all ranks ({}), and this "
                          "machine, or the limit of its container, has {} left; reduce --bytes, "
                          "--np, --memory or --against",
                          describe(c),
                          in_gibibytes(all),
                          shares,
                          in_gibibytes(available)));
}

}  // namespace peal::bench
