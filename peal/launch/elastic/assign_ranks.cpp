#include "peal/launch/elastic/assign_ranks.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

namespace peal::launch::elastic {
namespace {

constexpr Rank kNoRank = std::numeric_limits<Rank>::max();

Rank earlier_rank(const Worker& worker) { return worker.rank.value_or(kNoRank); }

/// The order of the workers of a round, as described in the header.
std::vector<const Worker*> in_order(const State& state, const std::vector<int>& numbers) {
  std::vector<const Worker*> workers;
  std::map<std::string, Rank> first_rank;
  for (const int number : numbers) {
    const Worker& worker = state.workers.at(static_cast<std::size_t>(number));
    workers.push_back(&worker);
    Rank& first = first_rank.try_emplace(worker.host, kNoRank).first->second;
    first = std::min(first, earlier_rank(worker));
  }
  const auto age = [&](const Worker& worker) {
    return std::ranges::find(state.hosts, worker.host, &Host::name) - state.hosts.begin();
  };
  std::ranges::sort(workers, {}, [&](const Worker* worker) {
    return std::tuple(first_rank[worker->host], age(*worker), earlier_rank(*worker), worker->slot);
  });
  return workers;
}

}  // namespace

std::vector<Member> assign_ranks(const State& state, const std::vector<int>& numbers) {
  const std::vector<const Worker*> workers = in_order(state, numbers);
  std::vector<std::string> hosts;                 // in the order of the ranks
  std::map<std::string, std::vector<int>> slots;  // in use, of each host
  for (const Worker* worker : workers) {
    auto& of_host = slots[worker->host];
    if (of_host.empty()) hosts.push_back(worker->host);
    of_host.push_back(worker->slot);
  }
  for (auto& [host, of_host] : slots) std::ranges::sort(of_host);

  std::vector<Member> members;
  for (const Worker* worker : workers) {
    const auto& own = slots[worker->host];
    const auto local = std::ranges::find(own, worker->slot) - own.begin();
    rendezvous::ElasticAssignment place{
        .round = state.round + 1,
        .rank = static_cast<Rank>(members.size()),
        .size = static_cast<int>(workers.size()),
        .local_rank = static_cast<Rank>(local),
        .local_size = static_cast<int>(own.size()),
        .cross_rank = 0,
        .cross_size = 0,
        .hostname = worker->host,
        .slot = worker->slot,
        .store = nullptr,
    };
    for (const std::string& host : hosts) {
      if (std::ssize(slots[host]) <= local) continue;  // it has no such local rank
      if (host == worker->host) place.cross_rank = place.cross_size;
      ++place.cross_size;
    }
    members.push_back({.worker = worker->number, .place = std::move(place)});
  }
  return members;
}

}  // namespace peal::launch::elastic
