// Files of images, plain or gzipped: the sizes are those of the values.
#include "peal/train/data/idx.h"

#include <functional>
#include <numeric>

#include "peal/train/data/gzip.h"

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  using namespace train::data;
  constexpr Bytes kLimit = 1_MiB;
  const auto bytes = std::as_bytes(std::span(input));
  const auto idx = unless_refused(ErrorKind::kUsage, [&] {
    return is_gzip(bytes) ? parse_idx(gunzip(bytes, kLimit)) : parse_idx(bytes);
  });
  if (!idx) return;
  const std::size_t product =
      std::accumulate(idx->shape.begin(), idx->shape.end(), std::size_t{1}, std::multiplies<>());
  require(product == idx->values.size(), "as many values as the shape says");
}
