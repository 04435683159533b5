#include "peal/engine/plan_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/mixed.h"
#include "peal/schedule/opening.h"
#include "peal/schedule/problem.h"

namespace peal::engine {
namespace {

using schedule::Holds;
using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Step;
using schedule::Wait;

/// Most programs repeat few problems. The limit is for a program with many.
constexpr std::size_t kMostPlans = 256;

/// Problem::registered, as far as this rank knows it.
std::vector<bool> registered_ranks(const Surroundings& surroundings, HostMemory host_memory) {
  std::vector<bool> registered(static_cast<std::size_t>(surroundings.ranks),
                               host_memory == HostMemory::kRegistered);
  if (host_memory != HostMemory::kForeign)
    registered[static_cast<std::size_t>(surroundings.self)] = true;
  return registered;
}

void check_opening(const Part& part, const std::vector<Step>& opening, const Problem& problem) {
  const bool is_there = part.steps.size() >= opening.size() &&
                        std::equal(opening.begin(), opening.end(), part.steps.begin());
  if (is_there) return;
  throw Error(ErrorKind::kBug,
              fmt::format("a part of {} that depends on registered memory does not begin with the "
                          "opening",
                          name_of(problem.operation)));
}

void append(std::vector<Operand>& operands, const Slice& slice) {
  if (slice.space == Space::kWire) {
    operands.push_back({Operand::kWire, slice.offset});
    return;
  }
  for (int i = 0; i < slice.ranks.count; ++i) {
    operands.push_back({BufferAddresses::base_of(slice.space, slice.ranks[i]), slice.offset});
  }
}

/// The step in which an exchange copies into the stage; nothing if the part is not an exchange.
std::optional<std::size_t> exchange_in(const Part& part) {
  constexpr std::size_t kLength = 4;
  // Longer parts work in pieces, and must report their progress. The function for exchanges does
  // not report, and made an all_reduce of 64 MiB of foreign memory take 1.3 times as long.
  constexpr std::size_t kMostBefore = 3;
  const std::vector<Step>& steps = part.steps;
  if (steps.size() < kLength || steps.size() > kMostBefore + kLength) return std::nullopt;
  const std::size_t first = steps.size() - kLength;
  const Move* in = std::get_if<Move>(&steps[first]);
  const Signal* signal = std::get_if<Signal>(&steps[first + 1]);
  const Wait* wait = std::get_if<Wait>(&steps[first + 2]);
  const Move* out = std::get_if<Move>(&steps[first + 3]);
  if (in == nullptr || signal == nullptr || wait == nullptr || out == nullptr) return std::nullopt;
  const bool to_one = is_copy(*in) && in->to.size() == 1 && in->to[0].ranks.count == 1;
  return to_one && wait->value == signal->value ? std::optional(first) : std::nullopt;
}

/// An average multiplies contributions by `weight` and divides the completed value by `divisor`.
/// weight / divisor = 1 / ranks.
struct Average {
  double weight = 1.0;
  double divisor = 1.0;
};

/// Integers are added unscaled. Floating and complex numbers are scaled by a power of two. So no
/// partial sum is larger than the largest contribution, and the bits equal those of the sum divided
/// by the number of ranks.
Average average_of(DType dtype, ReduceOp::Kind reduce, int ranks) {
  if (reduce != ReduceOp::Kind::kAvg) return {};
  if (!is_floating(dtype) && !is_complex(dtype)) return {.divisor = static_cast<double>(ranks)};
  const double scale = std::bit_ceil(static_cast<unsigned>(ranks));
  return {.weight = 1.0 / scale, .divisor = ranks / scale};
}

/// Operations that do not reduce also get a reducer, which is not used.
kernels::Reducer reducer(DType dtype, ReduceOp::Kind reduce, kernels::Finish finish) {
  if (!has_meaning(reduce, dtype)) return {dtype, ReduceOp::Kind::kMax, {}};
  return {dtype, reduce, finish};
}

/// Whether every rank knows every count. Then all counts must agree.
bool counts_are_common(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kReduceScatter;
}

/// Hash of what must agree and has no field in the fingerprint.
std::uint64_t detail_of(const Problem& problem) {
  std::uint64_t hash =
      mixed(static_cast<std::uint64_t>(problem.stage_limit.value), problem.counts.empty() ? 0 : 1);
  if (counts_are_common(problem.operation)) {
    for (const Elements count : problem.counts)
      hash = mixed(hash, static_cast<std::uint64_t>(count.value));
  }
  return hash;
}

}  // namespace

PlannedPart::PlannedPart(Part p, int ranks, kernels::Stores outputs, double weight)
    : part(std::move(p)),
      moves(part.steps.size()),
      sent(static_cast<std::size_t>(ranks)),
      received(static_cast<std::size_t>(ranks)) {
  for (std::size_t i = 0; i < part.steps.size(); ++i) {
    const Move* move = std::get_if<Move>(&part.steps[i]);
    if (move == nullptr) continue;
    Operands& apart = moves[i];
    apart.begin = static_cast<std::uint32_t>(operands.size());
    for (const Slice& slice : move->from) {
      append(operands, slice);
      if (weight != 1.0) {
        weights.resize(operands.size(), slice.holds == Holds::kContribution ? weight : 1.0);
      }
      if (slice.space != Space::kWire) continue;
      apart.kind = Operands::Kind::kReceive;
      apart.peer = slice.ranks.first;
      received[static_cast<std::size_t>(apart.peer)] += move->count;
    }
    apart.sources = static_cast<std::uint32_t>(operands.size()) - apart.begin;
    for (const Slice& slice : move->to) {
      append(operands, slice);
      if (slice.space != Space::kWire) continue;
      apart.kind = Operands::Kind::kSend;
      apart.peer = slice.ranks.first;
      sent[static_cast<std::size_t>(apart.peer)] += move->count;
    }
    apart.targets = static_cast<std::uint32_t>(operands.size()) - apart.begin - apart.sources;
    if (weight != 1.0) weights.resize(operands.size(), 1.0);
    const bool into_output = std::ranges::all_of(
        move->to, [](const Slice& slice) { return slice.space == Space::kOutput; });
    if (into_output) apart.stores = outputs;
    apart.stages = apart.kind == Operands::Kind::kLocal && apart.sources == 1 &&
                   apart.targets == 1 && move->to[0].space == Space::kStage;
  }
  if (const auto first = exchange_in(part)) {
    is_exchange = std::ranges::all_of(
        moves, [](const Operands& move) { return move.kind == Operands::Kind::kLocal; });
    exchange = *first;
  }
}

CachedPlan& PlanCache::find(const Problem& problem, DType dtype, ReduceOp::Kind reduce) {
  if (!problem.counts.empty()) return uneven_.emplace(make(problem, dtype, reduce));
  const Key key = key_of(problem, dtype, reduce);
  if (last_ != nullptr && key == last_key_) return *last_;
  auto found = plans_.find(key);
  if (found == plans_.end()) {
    CachedPlan made = make(problem, dtype, reduce);
    if (plans_.size() >= kMostPlans) {
      last_ = nullptr;  // it may be the oldest
      plans_.erase(by_age_.front());
      by_age_.pop_front();
    }
    found = plans_.emplace(key, std::move(made)).first;
    by_age_.push_back(key);
  }
  last_key_ = key;
  last_ = &found->second;
  return *last_;
}

/// An output that is also an input was just read, so ordinary stores are best for it.
kernels::Stores PlanCache::stores_of(const CachedPlan& plan) const {
  const Problem& problem = plan.problem;
  if (problem.in_place && reduces(problem.operation)) return kernels::Stores::kCached;
  Elements touched;
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    touched += input_size(problem, rank) + output_size(problem, rank);
  }
  return bytes_of(touched, plan.fingerprint.dtype) > surroundings_.cache
             ? kernels::Stores::kStreaming
             : kernels::Stores::kCached;
}

const PlannedPart& PlanCache::part(CachedPlan& plan, HostMemory host_memory) {
  std::optional<PlannedPart>& part = plan.parts[static_cast<std::size_t>(host_memory)];
  if (!part) part.emplace(make_part(plan, host_memory));
  return *part;
}

PlannedPart PlanCache::make_part(const CachedPlan& plan, HostMemory host_memory) {
  Problem problem = plan.problem;
  problem.registered = registered_ranks(surroundings_, host_memory);
  Part part = planner_.plan(plan.fingerprint.algorithm, problem);
  std::vector<Step> opening;
  if (plan.opens && !part.steps.empty()) {
    opening = schedule::opening(problem, surroundings_.self);
    check_opening(part, opening, problem);
  }
  PlannedPart planned(std::move(part), surroundings_.ranks, stores_of(plan), plan.weight);
  if (learns_in_opening(problem, surroundings_.self)) planned.opening = opening.size();
  return planned;
}

CachedPlan PlanCache::make(Problem problem, DType dtype, ReduceOp::Kind reduce) {
  problem.ranks = surroundings_.ranks;
  problem.ranks_per_host = surroundings_.ranks_per_host;
  problem.stage_limit = Elements(surroundings_.stage / size_of(dtype));
  problem.registered.clear();
  const Planner::Choice choice = planner_.choose(problem, size_of(dtype));
  const Average average = average_of(dtype, reduce, problem.ranks);
  CachedPlan plan{.problem = problem,
                  .fingerprint = {.operation = problem.operation,
                                  .dtype = dtype,
                                  .reduce = reduce,
                                  .algorithm = choice.algorithm,
                                  .root = problem.root,
                                  .count = problem.count,
                                  .detail = detail_of(problem)},
                  .opens = choice.opens,
                  .weight = average.weight,
                  .reducer = reducer(dtype, reduce, {}),
                  .finisher = reducer(dtype, reduce, {.divisor = average.divisor})};
  plan.digest = digest(plan.fingerprint);
  for (Rank rank = 0; plan.opens && rank < problem.ranks; ++rank) {
    plan.shared.push_back(
        {is_shared(problem, rank, Space::kInput) && input_size(problem, rank) > Elements(0),
         is_shared(problem, rank, Space::kOutput) && output_size(problem, rank) > Elements(0)});
  }
  return plan;
}

PlanCache::Key PlanCache::key_of(const Problem& problem, DType dtype, ReduceOp::Kind reduce) {
  const auto word = [](auto value, int shift) { return static_cast<std::int64_t>(value) << shift; };
  return {.count = problem.count.value,
          .rest = word(problem.root, 32) | word(problem.operation, 24) | word(dtype, 16) |
                  word(reduce, 8) | word(problem.in_place ? 1 : 0, 0)};
}

std::size_t PlanCache::KeyHash::operator()(const Key& key) const {
  return mixed(static_cast<std::uint64_t>(key.rest), static_cast<std::uint64_t>(key.count));
}

}  // namespace peal::engine
