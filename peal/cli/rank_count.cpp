#include "peal/cli/rank_count.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/parse_number.h"
#include "peal/cli/spelling.h"

namespace peal::cli {

std::optional<int> parse_count(const std::vector<std::string>& counts,
                               const launch::Wording& wording) {
  if (counts.empty()) return std::nullopt;
  if (counts.size() > 1) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{} is given {} times, with {} (-n, -np, --num-proc and --nproc-per-node are "
                    "the same option); give it once",
                    wording.count,
                    counts.size(),
                    fmt::join(counts, " and ")));
  }
  if (const auto count = try_parse_number<int>(counts.front())) return *count;
  throw Error(
      ErrorKind::kUsage,
      fmt::format(
          "{} \"{}\": it takes the number of ranks, 1 or more", wording.count, counts.front()));
}

Error missing_count(const std::vector<std::string>& command, const launch::Wording& wording) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string option = as_declared(command[i]);
    if (!option.starts_with("-n")) continue;
    std::string count = option.substr(2);
    if (count.empty() && i + 1 < command.size()) count = command[i + 1];
    if (!try_parse_number<int>(count)) continue;
    return Error(ErrorKind::kUsage,
                 fmt::format("how many ranks? All words after the command belong to it; did "
                             "you mean: {} {} {} {}",
                             wording.program,
                             wording.count,
                             count,
                             command.front()));
  }
  return Error(ErrorKind::kUsage,
               fmt::format("how many ranks? Use {}, as in: {}", wording.count, wording.example()));
}

}  // namespace peal::cli
