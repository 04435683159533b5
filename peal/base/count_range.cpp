#include "peal/base/count_range.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/printable.h"

namespace peal {

std::optional<CountRange> parse_count_range(std::string_view text,
                                            std::string_view source,
                                            std::string_view what) {
  const auto separator = text.find_first_of(":-,");
  if (separator == std::string_view::npos || text.starts_with('-')) return std::nullopt;
  const auto least = try_parse_number<int>(text.substr(0, separator));
  const auto most = try_parse_number<int>(text.substr(separator + 1));
  const bool has_form = text[separator] == ':' && least && most && *least >= 1;
  if (has_form && *least <= *most) return CountRange{*least, *most};
  throw Error(ErrorKind::kUsage,
              fmt::format("{} {}: it takes the least and the most {} of an elastic job, in this "
                          "order, as in 2:4{}",
                          source,
                          quoted_beginning(text),
                          what,
                          has_form ? fmt::format("; {} is more than {}", *least, *most) : ""));
}

}  // namespace peal
