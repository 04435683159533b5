#include "peal/rendezvous/nodelist.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/base/split.h"

namespace peal::rendezvous {
namespace {

constexpr std::size_t kMostHosts = 100'000;

Error malformed(std::string_view nodelist) {
  return Error(ErrorKind::kUsage,
               fmt::format("\"{}\" is not a list of nodes as Slurm writes it", nodelist));
}

/// The parts between commas that are not in brackets.
std::vector<std::string_view> items_of(std::string_view nodelist) {
  std::vector<std::string_view> items;
  std::size_t begin = 0;
  bool is_inside = false;
  for (std::size_t i = 0; i <= nodelist.size(); ++i) {
    const bool is_end = i == nodelist.size();
    if (!is_end && nodelist[i] == '[') is_inside = true;
    if (!is_end && nodelist[i] == ']') is_inside = false;
    if (!is_end && (nodelist[i] != ',' || is_inside)) continue;
    items.push_back(nodelist.substr(begin, i - begin));
    if (items.back().empty()) throw malformed(nodelist);
    begin = i + 1;
  }
  return items;
}

/// Adds the hosts of one item, which begin with `head`. A range keeps the zeros of its first
/// number.
void expand(const std::string& head,
            std::string_view rest,
            std::string_view nodelist,
            std::vector<std::string>& hosts) {
  const std::size_t open = rest.find('[');
  if (open == std::string_view::npos) {
    if (hosts.size() == kMostHosts || rest.find(']') != std::string_view::npos) {
      throw malformed(nodelist);
    }
    hosts.push_back(head + std::string(rest));
    return;
  }
  const std::size_t close = rest.find(']');
  if (close == std::string_view::npos || close < open) throw malformed(nodelist);
  const std::string start = head + std::string(rest.substr(0, open));
  for (const std::string_view range : split(rest.substr(open + 1, close - open - 1), ',')) {
    const std::size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const auto from = try_parse_number<int>(first);
    const auto to =
        dash == std::string_view::npos ? from : try_parse_number<int>(range.substr(dash + 1));
    if (!from || !to || *from < 0 || *to < *from) throw malformed(nodelist);
    for (int number = *from; number <= *to; ++number) {
      expand(start + fmt::format("{:0{}}", number, first.size()),
             rest.substr(close + 1),
             nodelist,
             hosts);
    }
  }
}

}  // namespace

std::vector<std::string> all_hosts(std::string_view nodelist) {
  std::vector<std::string> hosts;
  for (const std::string_view item : items_of(nodelist)) expand({}, item, nodelist, hosts);
  return hosts;
}

std::string first_host(std::string_view nodelist) { return all_hosts(nodelist).front(); }

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
