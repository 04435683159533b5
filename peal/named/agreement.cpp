#include "peal/named/agreement.h"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/serialize.h"

namespace peal::named {
namespace {

// The first word of the votes.
constexpr std::uint64_t kAnnounces = 1;

constexpr std::size_t kBits = 64;

/// The parts of the votes after the first word, each of words() words. All are combined by "or".
enum Part : std::size_t { kMissing, kPending, kForget, kParts };

bool test(std::span<const std::uint64_t> part, std::size_t bit) {
  return (part[bit / kBits] >> (bit % kBits) & 1) != 0;
}

void set(std::span<std::uint64_t> part, std::size_t bit) {
  part[bit / kBits] |= std::uint64_t{1} << (bit % kBits);
}

void clear(std::span<std::uint64_t> part, std::size_t bit) {
  part[bit / kBits] &= ~(std::uint64_t{1} << (bit % kBits));
}

bool can_be_fused(const Request& request) {
  switch (request.kind) {
    case Kind::kAllReduce:
      return request.reduction != Reduction::kAdasum;
    case Kind::kAllGather:
    case Kind::kBroadcast:
      return true;
    case Kind::kReduceScatter:
    case Kind::kAllToAll:
    case Kind::kBarrier:
    case Kind::kAgreement:
      return false;
  }
  return false;
}

bool may_be_fused(const Request& a, const Request& b, const AgreementOptions& options) {
  return a.kind == b.kind && a.dtype == b.dtype && a.reduction == b.reduction && a.root == b.root &&
         a.prescale == b.prescale && a.postscale == b.postscale &&
         (options.fuses_groups_with_others || a.group == b.group);
}

bool is_remembered(const Request& request) {
  return request.remembered && request.kind != Kind::kAgreement;
}

}  // namespace

Agreement::Agreement(std::vector<Rank> global_ranks, AgreementOptions options)
    : global_ranks_(std::move(global_ranks)),
      options_(options),
      cache_(options.cache_capacity),
      groups_(global_ranks_),
      joined_(global_ranks_.size(), false) {}

void Agreement::add(const Request& request) {
  const std::optional<std::size_t> number = cache_.try_find(request.name);
  if (number && agree(cache_.at(*number), request)) {
    voted_.emplace(*number, request);
    return;
  }
  if (number) to_forget_.push_back(*number);
  unannounced_.push_back(request);
}

void Agreement::join() { has_joined_ = true; }

const std::vector<std::uint64_t>& Agreement::votes() {
  const std::size_t size = words();
  votes_.assign(1 + kParts * size, 0);
  const std::span all(votes_);
  const auto part = [&](Part which) { return all.subspan(1 + which * size, size); };
  if (!unannounced_.empty() || (has_joined_ && !join_is_announced_)) all[0] |= kAnnounces;
  if (!has_joined_) std::ranges::fill(part(kMissing), ~std::uint64_t{0});
  for (const auto& [number, request] : voted_) {
    clear(part(kMissing), number);
    set(part(kPending), number);
  }
  for (const std::size_t number : to_forget_) {
    if (cache_.contains(number)) set(part(kForget), number);
  }
  to_forget_.clear();
  return votes_;
}

bool Agreement::accept(std::span<const std::uint64_t> votes_of_all) {
  const std::size_t size = words();
  const auto part = [&](Part which) { return votes_of_all.subspan(1 + which * size, size); };
  bool forgets = false;
  voted_by_all_.clear();
  for (std::size_t word = 0; word < size; ++word) {
    const std::uint64_t changed = part(kForget)[word];
    std::uint64_t bits = (part(kPending)[word] & ~part(kMissing)[word]) | changed;
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t number = word * kBits + static_cast<std::size_t>(std::countr_zero(bits));
      if (test(part(kForget), number)) {
        forget(number);
        forgets = true;
      } else {
        voted_by_all_.push_back(number);
      }
    }
  }
  return forgets || (votes_of_all[0] & kAnnounces) != 0;
}

void Agreement::forget(std::size_t number) {
  cache_.erase(number);
  announce_instead(number);
}

/// The entry is no longer in the cache. If this rank has its operation pending, announces it.
void Agreement::announce_instead(std::size_t number) {
  const auto mine = voted_.find(number);
  if (mine == voted_.end()) return;
  unannounced_.push_back(std::move(mine->second));
  voted_.erase(mine);
}

std::string Agreement::announcements() {
  const bool joins = has_joined_ && !join_is_announced_;
  if (unannounced_.empty() && !joins) return {};
  ByteWriter out;
  out.put_u8(joins ? 1 : 0).put_u32(static_cast<std::uint32_t>(unannounced_.size()));
  for (const Request& request : unannounced_) write(request, out);
  unannounced_.clear();
  join_is_announced_ = has_joined_;
  return std::move(out).take();
}

std::vector<Decision> Agreement::decide(std::span<const std::string> announcements_of_all) {
  arrivals_.clear();
  for (std::size_t rank = 0; rank < announcements_of_all.size(); ++rank) {
    read(static_cast<Rank>(rank), announcements_of_all[rank]);
  }
  std::vector<Decision> decisions = fail_uneven_groups();
  std::vector<Complete> complete = complete_operations();
  keep_whole_groups(complete);

  std::vector<Request> good;
  for (const Complete& one : complete) {
    settle(one);
    if (one.problem.empty()) {
      good.push_back(one.request);
    } else {
      decisions.push_back(
          {.kind = Decision::Kind::kFail, .requests = {one.request}, .problem = one.problem});
    }
  }
  for (std::vector<Request>& batch : fuse(std::move(good), options_)) {
    decisions.push_back(
        {.kind = Decision::Kind::kRun, .requests = std::move(batch), .problem = {}});
  }
  forget_other_sizes();
  if (std::optional<Decision> joined = end_of_join()) decisions.push_back(std::move(*joined));
  return decisions;
}

void Agreement::read(Rank rank, const std::string& announcements) {
  if (announcements.empty()) return;
  ByteReader in(announcements, "announcement of operations by name");
  const bool joins = in.get_u8() != 0;
  for (std::uint32_t left = in.get_u32(); left > 0; --left) {
    Request request = read_request(in);
    auto [entry, is_new] = announced_.try_emplace(request.name);
    Announced& announced = entry->second;
    if (is_new) {
      announced.number = next_number_++;
      announced.by_rank.resize(joined_.size());
    }
    arrivals_.push_back({request.name, rank});
    if (!request.group.empty()) groups_.note(rank, request);
    announced.by_rank[static_cast<std::size_t>(rank)] = std::move(request);
    if (is_complete(announced)) complete_.emplace(announced.number, entry->first);
  }
  in.finish();
  if (!joins) return;
  joined_[static_cast<std::size_t>(rank)] = true;
  join_order_.push_back(rank);
  for (const auto& [name, announced] : announced_) {
    if (is_complete(announced)) complete_.emplace(announced.number, name);
  }
}

/// The names of members contain the size of the group, as in "x_1of2". So if ranks have groups of
/// different sizes, their operations never become complete by themselves.
std::vector<Decision> Agreement::fail_uneven_groups() {
  std::vector<Decision> decisions;
  for (AnnouncedGroups::Uneven& group : groups_.take_uneven(joined_)) {
    Decision& decision = decisions.emplace_back();
    decision.kind = Decision::Kind::kFail;
    decision.problem = std::move(group.problem);
    for (const std::string& member : group.members) {
      const auto announced = announced_.find(member);
      const auto request = std::ranges::find_if(announced->second.by_rank,
                                                [](const auto& one) { return one.has_value(); });
      decision.requests.push_back(**request);
      complete_.erase(announced->second.number);
      announced_.erase(announced);
    }
  }
  return decisions;
}

/// If a rank has announced a group, other ranks cannot vote for a remembered group of another size
/// under the same name. They announce their group, so that the difference is found.
void Agreement::forget_other_sizes() {
  for (const Arrival& arrival : arrivals_) {
    const auto announced = announced_.find(arrival.name);
    if (announced == announced_.end()) continue;
    const Request& request = *announced->second.by_rank[static_cast<std::size_t>(arrival.rank)];
    if (request.group.empty()) continue;
    for (const std::size_t number : cache_.members_of(request.group)) {
      if (cache_.at(number).group_size != request.group_size) forget(number);
    }
  }
}

bool Agreement::is_complete(const Announced& announced) const {
  for (std::size_t rank = 0; rank < joined_.size(); ++rank) {
    if (!announced.by_rank[rank] && !joined_[rank]) return false;
  }
  return true;
}

std::string Agreement::problem_while_joined(const Request& request) const {
  if (join_order_.empty()) return {};
  const bool root_has_joined = request.kind == Kind::kBroadcast &&
                               std::ranges::find(join_order_, request.root) != join_order_.end();
  if (options_.runs_all_kinds_while_joined && !root_has_joined) return {};
  std::string operation;
  switch (request.kind) {
    case Kind::kAllReduce:
      if (request.reduction != Reduction::kAdasum) return {};
      operation = "Adasum";
      break;
    case Kind::kBarrier:
    case Kind::kAgreement:
      return {};
    case Kind::kAllGather:
      operation = "Allgather";
      break;
    case Kind::kBroadcast:
      operation = "Broadcast";
      break;
    case Kind::kAllToAll:
      operation = "Alltoall";
      break;
    case Kind::kReduceScatter:
      operation = "Reducescatter";
      break;
  }
  std::vector<Rank> ranks;
  for (const Rank rank : join_order_) {
    ranks.push_back(global_ranks_[static_cast<std::size_t>(rank)]);
  }
  std::ranges::sort(ranks);
  return fmt::format(
      "{} is not supported with Join at this time. {} ({}) cannot run, because {} called join()",
      operation,
      operation,
      request.name,
      ranks_text(ranks) + (ranks.size() == 1 ? " has" : " have"));
}

std::string Agreement::problem_of(const Announced& announced) const {
  std::vector<const Request*> requests;
  for (const auto& request : announced.by_rank) requests.push_back(request ? &*request : nullptr);
  return difference(requests, global_ranks_);
}

std::vector<Agreement::Complete> Agreement::complete_operations() const {
  std::vector<Complete> complete;
  for (const std::size_t number : voted_by_all_) {
    const Request& request = cache_.at(number);
    complete.push_back({request, problem_while_joined(request)});
  }
  for (const auto& [number, name] : complete_) {
    const Announced& announced = announced_.at(name);
    const auto first = std::ranges::find_if(
        announced.by_rank, [](const auto& request) { return request.has_value(); });
    std::string problem = problem_of(announced);
    if (problem.empty()) problem = problem_while_joined(**first);
    complete.push_back({**first, std::move(problem)});
  }
  return complete;
}

/// Removes members of groups that are not complete. If a member has a problem, all members get it.
void Agreement::keep_whole_groups(std::vector<Complete>& complete) const {
  struct Group {
    int members = 0;
    std::string problem;
  };
  std::unordered_map<std::string, Group> groups;
  for (const Complete& one : complete) {
    if (one.request.group.empty()) continue;
    Group& group = groups[one.request.group];
    ++group.members;
    if (group.problem.empty()) group.problem = one.problem;
  }
  if (groups.empty()) return;
  std::erase_if(complete, [&](Complete& one) {
    if (one.request.group.empty()) return false;
    const Group& group = groups.at(one.request.group);
    one.problem = group.problem;
    return groups_.is_uneven(one.request.group) || group.members < one.request.group_size;
  });
}

/// Updates the state for an operation that is about to run or fail.
void Agreement::settle(const Complete& complete) {
  const std::string& name = complete.request.name;
  const auto announced = announced_.find(name);
  if (announced == announced_.end()) {
    const std::size_t number = *cache_.try_find(name);
    cache_.touch(number);
    voted_.erase(number);
    return;
  }
  complete_.erase(announced->second.number);
  announced_.erase(announced);
  const std::string& group_name = complete.request.group;
  if (!group_name.empty()) groups_.erase(group_name);
  if (!complete.problem.empty() || !is_remembered(complete.request)) return;
  if (const auto evicted = cache_.insert(complete.request)) announce_instead(*evicted);
}

std::optional<Decision> Agreement::end_of_join() {
  if (join_order_.size() < joined_.size()) return std::nullopt;
  Decision decision{.kind = Decision::Kind::kAllJoined, .requests = {}, .problem = {}};
  decision.last = join_order_.back();
  join_order_.clear();
  joined_.assign(joined_.size(), false);
  has_joined_ = false;
  join_is_announced_ = false;
  return decision;
}

std::vector<std::vector<Request>> fuse(std::vector<Request> requests,
                                       const AgreementOptions& options) {
  struct Open {
    std::size_t batch;
    Bytes size;
  };
  std::vector<std::vector<Request>> batches;
  std::vector<Open> open;  // one for each set of properties
  for (Request& request : requests) {
    const Bytes size = bytes_of(request);
    const bool fuses = can_be_fused(request) && size <= options.fusion_threshold;
    const auto same = std::ranges::find_if(open, [&](const Open& one) {
      return may_be_fused(batches[one.batch].front(), request, options);
    });
    if (!fuses) {
      batches.push_back({std::move(request)});
    } else if (same == open.end()) {
      open.push_back({batches.size(), size});
      batches.push_back({std::move(request)});
    } else if (same->size + size <= options.fusion_threshold) {
      same->size += size;
      batches[same->batch].push_back(std::move(request));
    } else {
      *same = {batches.size(), size};
      batches.push_back({std::move(request)});
    }
  }
  return batches;
}

}  // namespace peal::named
