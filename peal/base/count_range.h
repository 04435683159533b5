// A range of counts, as in "2:4": the least and the most ranks or nodes of an elastic job.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace peal {

struct CountRange {
  int least = 1;
  int most = 1;
};

/// MIN and MAX of "MIN:MAX", with 1 <= MIN <= MAX; nothing if `text` is not meant as a range.
/// `source`: "-n", `what`: "ranks", for the error.
/// Errors: usage, also for 2-4 and 2,4, so that the error can show the right form.
std::optional<CountRange> parse_count_range(std::string_view text,
                                            std::string_view source,
                                            std::string_view what);

}  // namespace peal
