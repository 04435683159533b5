#include "peal/transport/link/hosts.h"

#include <map>
#include <set>
#include <string_view>

namespace peal::transport {

std::size_t ranks_per_host(std::span<const Contact> contacts) {
  const auto same = [&](std::size_t a, std::size_t b) {
    return contacts[a].host_id == contacts[b].host_id;
  };
  std::size_t first = 1;
  while (first < contacts.size() && same(0, first)) ++first;
  if (contacts.size() % first != 0) return 1;
  std::set<std::string_view> seen;
  for (std::size_t rank = 0; rank < contacts.size(); ++rank) {
    const bool begins = rank % first == 0;
    if (!begins && !same(rank, rank - 1)) return 1;
    if (begins && !seen.insert(contacts[rank].host_id).second) return 1;
  }
  return first;
}

std::vector<int> number_hosts(std::span<const Contact> contacts) {
  std::vector<int> numbers;
  std::map<std::string_view, int> known;
  for (const Contact& contact : contacts) {
    const int next = static_cast<int>(numbers.size());
    const bool alone = contact.choice == TransportChoice::kTcp;
    numbers.push_back(
        alone ? next
              : known.emplace(contact.host_id, static_cast<int>(known.size())).first->second);
  }
  return numbers;
}

}  // namespace peal::transport
