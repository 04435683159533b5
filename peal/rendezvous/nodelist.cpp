#include "peal/rendezvous/nodelist.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/split.h"

namespace peal::rendezvous {

std::string first_host(std::string_view nodelist) {
  const auto malformed = [&] {
    return Error(ErrorKind::kUsage,
                 fmt::format("\"{}\" is not a list of nodes as Slurm writes it", nodelist));
  };
  std::string host;
  std::string_view rest = nodelist;
  while (!rest.empty() && rest.front() != ',') {
    if (rest.front() != '[') {
      host += rest.front();
      rest.remove_prefix(1);
      continue;
    }
    const std::size_t close = rest.find(']');
    const std::size_t end = rest.find_first_of(",-]");  // of the first number, with its zeros
    if (close == std::string_view::npos || end <= 1) throw malformed();
    host += rest.substr(1, end - 1);
    rest.remove_prefix(close + 1);
  }
  if (host.empty()) throw malformed();
  return host;
}

std::optional<int> tasks_on_node(std::string_view tasks_per_node, int index) {
  int first = 0;  // the first node of the next entry
  for (std::string_view entry : split(tasks_per_node, ',')) {
    std::optional<int> times = 1;
    if (const std::size_t open = entry.find("(x"); open != std::string_view::npos) {
      if (!entry.ends_with(')')) return std::nullopt;
      times = try_parse_number<int>(entry.substr(open + 2, entry.size() - open - 3));
      entry = entry.substr(0, open);
    }
    if (!times || *times < 1) return std::nullopt;
    if (index - first < *times) return try_parse_number<int>(entry);
    first += *times;
  }
  return std::nullopt;
}

}  // namespace peal::rendezvous
