#include "peal/bench/tune.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "peal/base/operation.h"
#include "peal/plan/table.h"
#include "peal/schedule/schedule.h"
#include "peal/schedule/scratch.h"

namespace peal::bench {
namespace {

constexpr std::string_view kPrefix = "peal-";
/// What another algorithm must win at least, as a part of the time.
constexpr double kWorthIt = 0.05;

Operation operation_of(Op op) {
  switch (op) {
    case Op::kAllReduce:
      return Operation::kAllReduce;
    case Op::kReduceScatter:
      return Operation::kReduceScatter;
    case Op::kAllGather:
      return Operation::kAllGather;
    case Op::kBroadcast:
      return Operation::kBroadcast;
    case Op::kReduce:
      return Operation::kReduce;
    case Op::kGather:
      return Operation::kGather;
    case Op::kScatter:
      return Operation::kScatter;
    case Op::kAllToAll:
      return Operation::kAllToAll;
    case Op::kSendRecv:
      return Operation::kSend;
    case Op::kBarrier:
      return Operation::kBarrier;
  }
  return Operation::kBarrier;
}

/// By algorithm: the sum of the logarithms of its medians, and of how many.
struct Score {
  double logarithms = 0;
  int cases = 0;
};
using Scores = std::map<std::string, Score>;
/// By operation and size.
using Board = std::map<Op, std::map<Bytes, Scores>>;

Board make_board(const std::vector<Result>& results) {
  Board board;
  for (const Result& result : results) {
    if (!result.backend.starts_with(kPrefix)) continue;
    const std::string algorithm = result.backend.substr(kPrefix.size());
    Score& score = board[result.the_case.op][bytes_of(result.the_case)][algorithm];
    score.logarithms += std::log(result.time.median);
    ++score.cases;
  }
  return board;
}

/// The best of those that did as many cases as any; `before` where that is nearly as good.
std::string winner(const Scores& scores, const std::string& before) {
  int most = 0;
  for (const auto& [name, score] : scores) most = std::max(most, score.cases);
  const std::string* best = nullptr;
  for (const auto& [name, score] : scores) {
    if (score.cases < most) continue;
    if (best == nullptr || score.logarithms < scores.at(*best).logarithms) best = &name;
  }
  const auto old = scores.find(before);
  const bool is_comparable = old != scores.end() && old->second.cases == most;
  const double slack = most * -std::log(1 - kWorthIt);
  if (is_comparable && old->second.logarithms <= scores.at(*best).logarithms + slack) return before;
  return *best;
}

/// The power of two next to the geometric mean.
Bytes between(Bytes smaller, Bytes larger) {
  const double mean =
      std::sqrt(static_cast<double>(smaller.value) * static_cast<double>(larger.value));
  return Bytes(std::int64_t{1} << std::lround(std::log2(mean)));
}

/// Where a row counts that ranks found which had that transport. `direct` and `inline` say so
/// themselves, since they apply on one host only.
plan::Where where(std::string_view algorithm, std::string_view transport) {
  if (transport == "shm+tcp") return plan::Where::kLevels;
  if (transport != "shm") return plan::Where::kSeveralHosts;
  const bool is_local = algorithm == "direct" || algorithm == "inline";
  return is_local ? plan::Where::kAnywhere : plan::Where::kOneHost;
}

void add_rows(Op op,
              const std::map<Bytes, Scores>& sizes,
              const std::string& transport,
              plan::Table& table) {
  Bytes begin(-1);
  Bytes previous(0);
  std::string holder;
  const auto close = [&](Bytes end) {
    table.rows.push_back({.operation = operation_of(op),
                          .where = where(holder, transport),
                          .over = begin,
                          .up_to = end,
                          .algorithm = &plan::algorithm_named(holder)});
  };
  for (const auto& [size, scores] : sizes) {
    const std::string next = winner(scores, holder);
    if (!holder.empty() && next != holder) {
      const Bytes border = between(previous, size);
      close(border);
      begin = border;
    }
    holder = next;
    previous = size;
  }
  close(plan::kAnySize);
}

/// By one operation, as the engine has it: ranks that share memory keep several operations there.
/// They round the stage up to pages; nearly that much more could be staged than is said here.
Bytes most_staged(int ranks_per_host, Bytes stage) {
  if (ranks_per_host == 1) return stage;
  return schedule::Scratch({.ring = stage, .cell = 0_B}).limit();
}

}  // namespace

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const plan::Algorithm& algorithm : plan::algorithms()) names.emplace_back(algorithm.name);
  return names;
}

bool algorithm_applies(const std::string& name, const Case& c, int ranks_per_host, Bytes stage) {
  if (c.op == Op::kSendRecv) return false;
  const Bytes limit = most_staged(ranks_per_host, stage);
  const schedule::Problem problem{.operation = operation_of(c.op),
                                  .ranks = c.ranks,
                                  .ranks_per_host = ranks_per_host,
                                  .root = kRoot,
                                  .count = c.count,
                                  .in_place = placement(c, kRoot).sharing == Sharing::kOneMemory,
                                  .stage_limit = Elements(limit / size_of(c.dtype))};
  return plan::algorithm_named(name).applies(problem);
}

std::string tuned_backend(const std::string& algorithm) { return std::string(kPrefix) + algorithm; }

std::string tune_text(const std::vector<Result>& results) {
  plan::Table table;
  for (const auto& [op, sizes] : make_board(results)) {
    add_rows(op, sizes, results.front().transport, table);
  }
  return plan::to_text(table, ";");
}

}  // namespace peal::bench
