#include "peal/cli/rank_count.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/parse_number.h"
#include "peal/cli/spelling.h"

namespace peal::cli {

std::optional<int> parse_count(const std::vector<std::string>& counts) {
  if (counts.empty()) return std::nullopt;
  if (counts.size() > 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("-n is given {} times, with {} (-np, --num-proc and --nproc-per-node are "
                    "the same option); give it once",
                    counts.size(),
                    fmt::join(counts, " and ")));
  }
  if (const auto count = try_parse_number<int>(counts.front())) return *count;
  throw Error(ErrorKind::kUsage,
              fmt::format("-n \"{}\": it takes the number of ranks, 1 or more", counts.front()));
}

Error missing_count(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string option = as_declared(command[i]);
    if (!option.starts_with("-n")) continue;
    std::string count = option.substr(2);
    if (count.empty() && i + 1 < command.size()) count = command[i + 1];
    if (!try_parse_number<int>(count)) continue;
    return Error(ErrorKind::kUsage,
                 fmt::format("how many ranks? All words after the command belong to it; did "
                             "you mean: peal run -n {} {}",
                             count,
                             command.front()));
  }
  return Error(ErrorKind::kUsage, "how many ranks? Use -n, as in: peal run -n 2 ./train");
}

}  // namespace peal::cli
