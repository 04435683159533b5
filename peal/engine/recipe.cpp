#include "peal/engine/recipe.h"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/schedule/problem.h"

namespace peal::engine {
namespace {

using schedule::Access;
using schedule::Holds;
using schedule::Move;
using schedule::Part;
using schedule::Problem;
using schedule::Signal;
using schedule::Slice;
using schedule::Space;
using schedule::Wait;

/// Programs repeat few shapes; one that does not would fill the memory.
constexpr std::size_t kMostRecipes = 256;

bool begins_with_meeting(const Part& part, Decides decides) {
  const std::size_t steps = meeting_steps(decides);
  if (part.steps.size() < steps) return false;
  bool all = true;
  for (std::size_t i = 0; i < steps; ++i) {
    const Signal* signal = std::get_if<Signal>(&part.steps[i]);
    const Wait* wait = std::get_if<Wait>(&part.steps[i]);
    all =
        all && ((signal != nullptr && signal->value == 1) || (wait != nullptr && wait->value == 1));
  }
  return all;
}

/// Between a root and the others only the root's memory is touched by other ranks.
Decides decides(const Planner::Choice& choice, const Problem& problem) {
  if (!choice.looks_at_access || problem.count == Elements(0)) return Decides::kNobody;
  if (!problem.counts.empty()) return Decides::kNobody;  // not all ranks know all of them
  switch (problem.operation) {
    case Operation::kBroadcast:
    case Operation::kScatter:
    case Operation::kGather:
      return Decides::kRoot;
    case Operation::kReduce:
    case Operation::kAllReduce:
    case Operation::kAllGather:
    case Operation::kReduceScatter:
    case Operation::kAllToAll:
      return Decides::kEverybody;
    case Operation::kBarrier:
    case Operation::kSend:
    case Operation::kRecv:
      return Decides::kNobody;
  }
  return Decides::kNobody;
}

void append(std::vector<Operand>& operands, const Slice& slice) {
  if (slice.space == Space::kWire) {
    operands.push_back({Operand::kWire, slice.offset});
    return;
  }
  for (int i = 0; i < slice.ranks.count; ++i) {
    operands.push_back({Places::base_of(slice.space, slice.ranks[i]), slice.offset});
  }
}

/// Where an exchange copies into the stage; nothing if the part is none.
std::optional<std::size_t> exchange_in(const Part& part) {
  const std::vector<schedule::Step>& steps = part.steps;
  if (steps.size() < 4 || steps.size() > 5 || part.span != 1) return std::nullopt;
  const std::size_t first = steps.size() - 4;
  const Wait* look = std::get_if<Wait>(&steps.front());
  if (first == 1 && (look == nullptr || look->value != 0)) return std::nullopt;
  const Move* in = std::get_if<Move>(&steps[first]);
  const Signal* signal = std::get_if<Signal>(&steps[first + 1]);
  const Wait* wait = std::get_if<Wait>(&steps[first + 2]);
  const Move* out = std::get_if<Move>(&steps[first + 3]);
  if (in == nullptr || signal == nullptr || wait == nullptr || out == nullptr) return std::nullopt;
  const bool to_one = is_copy(*in) && in->to.size() == 1 && in->to[0].ranks.count == 1;
  const bool over_wire = in->from[0].space == Space::kWire || in->to[0].space == Space::kWire;
  return to_one && !over_wire && wait->value == 1 ? std::optional(first) : std::nullopt;
}

/// An average multiplies contributions by `weight` and divides the completed value by `divisor`.
/// weight / divisor = 1 / ranks.
struct Average {
  double weight = 1.0;
  double divisor = 1.0;
};

/// Integers are added unscaled. Fractions are scaled by a power of two. So no partial sum is larger
/// than the largest contribution, and the bits are those of the sum divided by the ranks.
Average average_of(DType dtype, ReduceOp::Kind reduce, int ranks) {
  if (reduce != ReduceOp::Kind::kAvg) return {};
  if (!is_floating(dtype) && !is_complex(dtype)) return {.divisor = static_cast<double>(ranks)};
  const double scale = std::bit_ceil(static_cast<unsigned>(ranks));
  return {.weight = 1.0 / scale, .divisor = ranks / scale};
}

/// Operations that do not reduce have one too, which nobody uses.
kernels::Reducer reducer(DType dtype, ReduceOp::Kind reduce, kernels::Finish finish) {
  if (!has_meaning(reduce, dtype)) return {dtype, ReduceOp::Kind::kMax, {}};
  return {dtype, reduce, finish};
}

/// Whether every rank knows every count: then the counts must agree as a whole.
bool counts_are_common(Operation operation) {
  return operation == Operation::kAllGather || operation == Operation::kReduceScatter;
}

/// Of what must agree beside what the fingerprint has fields for.
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

std::size_t meeting_steps(Decides decides) {
  switch (decides) {
    case Decides::kNobody:
      return 0;
    case Decides::kRoot:
      return 1;  // the root signals, the others wait
    case Decides::kEverybody:
      return 2;  // a signal and a wait
  }
  return 0;
}

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
    is_exchange = moves.back().kind == Operands::Kind::kLocal;
    exchange = *first;
  }
}

Recipe& RecipeBook::find(const Problem& problem, DType dtype, ReduceOp::Kind reduce) {
  if (!problem.counts.empty()) return uneven_.emplace(make(problem, dtype, reduce));
  const Key key = key_of(problem, dtype, reduce);
  if (last_ != nullptr && key == last_key_) return *last_;
  auto found = recipes_.find(key);
  if (found == recipes_.end()) {
    if (recipes_.size() >= kMostRecipes) {
      last_ = nullptr;
      recipes_.clear();
    }
    found = recipes_.emplace(key, make(problem, dtype, reduce)).first;
  }
  last_key_ = key;
  last_ = &found->second;
  return *last_;
}

/// What was read a moment ago, as an output that is an input too, is best written where it is.
kernels::Stores RecipeBook::stores_of(const Recipe& recipe) const {
  const Problem& problem = recipe.problem;
  if (problem.in_place && reduces(problem.operation)) return kernels::Stores::kCached;
  Elements touched;
  for (Rank rank = 0; rank < problem.ranks; ++rank) {
    touched += input_size(problem, rank) + output_size(problem, rank);
  }
  return bytes_of(touched, recipe.fingerprint.dtype) > surroundings_.cache
             ? kernels::Stores::kStreaming
             : kernels::Stores::kCached;
}

const PlannedPart& RecipeBook::part(Recipe& recipe, Access access) {
  std::optional<PlannedPart>& part =
      access == Access::kRegistered ? recipe.registered : recipe.foreign;
  if (!part) {
    recipe.problem.access = access;
    part.emplace(planner_.plan(recipe.fingerprint.algorithm, recipe.problem),
                 surroundings_.ranks,
                 stores_of(recipe),
                 recipe.weight);
    if (access == Access::kRegistered && !begins_with_meeting(part->part, recipe.decides)) {
      throw Error(ErrorKind::kBug,
                  fmt::format("the part for registered memory of {} does not begin with a meeting",
                              name_of(recipe.problem.operation)));
    }
  }
  return *part;
}

Recipe RecipeBook::make(Problem problem, DType dtype, ReduceOp::Kind reduce) {
  problem.ranks = surroundings_.ranks;
  problem.ranks_per_host = surroundings_.ranks_per_host;
  problem.stage_limit = Elements(surroundings_.stage / size_of(dtype));
  problem.access = Access::kForeign;
  const Planner::Choice choice = planner_.choose(problem, size_of(dtype));
  const Average average = average_of(dtype, reduce, problem.ranks);
  Recipe recipe{.problem = problem,
                .fingerprint = {.operation = problem.operation,
                                .dtype = dtype,
                                .reduce = reduce,
                                .algorithm = choice.algorithm,
                                .root = problem.root,
                                .count = problem.count,
                                .detail = detail_of(problem)},
                .decides = decides(choice, problem),
                .weight = average.weight,
                .reducer = reducer(dtype, reduce, {}),
                .finisher = reducer(dtype, reduce, {.divisor = average.divisor})};
  recipe.digest = digest(recipe.fingerprint);
  return recipe;
}

RecipeBook::Key RecipeBook::key_of(const Problem& problem, DType dtype, ReduceOp::Kind reduce) {
  const auto word = [](auto value, int shift) { return static_cast<std::int64_t>(value) << shift; };
  return {.count = problem.count.value,
          .rest = word(problem.root, 32) | word(problem.operation, 24) | word(dtype, 16) |
                  word(reduce, 8) | word(problem.in_place ? 1 : 0, 0)};
}

std::size_t RecipeBook::KeyHash::operator()(const Key& key) const {
  return mixed(static_cast<std::uint64_t>(key.rest), static_cast<std::uint64_t>(key.count));
}

}  // namespace peal::engine
