#include "peal/rendezvous/roll_call.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace peal::rendezvous {

std::string key_of_rank(std::string_view prefix, Rank rank) {
  return fmt::format("{}{}", prefix, rank);
}

std::vector<std::string> keys_of_ranks(std::string_view prefix, std::span<const Rank> ranks) {
  std::vector<std::string> keys;
  for (const Rank rank : ranks) keys.push_back(key_of_rank(prefix, rank));
  return keys;
}

Timeout look_every(std::size_t ranks) {
  constexpr Timeout kOften{200};
  constexpr Timeout kForEach{4};
  return std::max(kOften, kForEach * static_cast<std::int64_t>(ranks));
}

std::vector<Rank> absent_ranks(store::Store& store,
                               std::string_view prefix,
                               std::span<const Rank> ranks) {
  const auto values = store.try_get_all(keys_of_ranks(prefix, ranks));
  std::vector<Rank> absent;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!values.at(i)) absent.push_back(ranks[i]);
  }
  return absent;
}

Error store_unresponsive_error(const Error& timeout) {
  return Error(ErrorKind::kTimeout,
               fmt::format("the store in which the ranks met does not answer: the process that "
                           "serves it, or that has locked its file, is stopped, or the "
                           "connection to it is lost ({})",
                           timeout.message()));
}

std::string absent_nodes_text(std::span<const Rank> absent, int ranks_per_node) {
  if (ranks_per_node == 0) return "";
  std::map<int, int> absent_of;  // how many ranks of each node
  for (const Rank rank : absent) ++absent_of[rank / ranks_per_node];
  std::vector<int> nodes;
  for (const auto& [node, count] : absent_of) {
    if (count == ranks_per_node) nodes.push_back(node);
  }
  if (nodes.empty()) return "";
  return fmt::format(
      "no rank of node{} {} came; ", nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "));
}

Error missing_ranks_error(std::span<const Rank> absent,
                          std::size_t all,
                          std::string_view did_what,
                          std::string_view advice) {
  constexpr std::size_t kShown = 16;
  const std::string more =
      absent.size() > kShown ? fmt::format(" and {} more", absent.size() - kShown) : "";
  return Error(ErrorKind::kTimeout,
               fmt::format("{} of {} ranks {}: rank {}{}; {}",
                           absent.size(),
                           all,
                           did_what,
                           fmt::join(absent.first(std::min(absent.size(), kShown)), ", "),
                           more,
                           advice),
               {.rank = absent.front()});
}

}  // namespace peal::rendezvous
