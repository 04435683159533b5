#include "peal/bench/tune.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "peal/bench/algorithm.h"

namespace peal::bench {
namespace {

constexpr std::string_view kPrefix = "peal-";
/// Stands for the built-in choice of each case, which peal uses without a row.
constexpr const char* kBuiltIn = "";
/// The minimum gain of another algorithm, as a fraction of the time; the second is for a single
/// round.
constexpr double kWorthIt = 0.05;
constexpr double kWorthItOnce = 0.2;
/// Up to this size the time of an operation does not depend on its size.
constexpr Bytes kSmall = 256_B;

/// The score of an algorithm over all cases of a size: sums of the logarithms of the times.
struct Score {
  double all = 0;
  std::vector<double> rounds;  // the rounds that all cases have
  int cases = 0;
};
using Scores = std::map<std::string, Score>;  // by algorithm, with kBuiltIn
/// Scores by operation and size.
using Board = std::map<Op, std::map<Bytes, Scores>>;

void add(const Summary& time, Score& score) {
  const std::vector<double>& rounds = time.medians;
  if (score.cases++ == 0) score.rounds.resize(rounds.size());
  score.rounds.resize(std::min(score.rounds.size(), rounds.size()));
  score.all += std::log(time.median);
  for (std::size_t i = 0; i < score.rounds.size(); ++i) score.rounds[i] += std::log(rounds[i]);
}

Surroundings surroundings_of(const Result& result, Bytes stage) {
  const int ranks = result.the_case.ranks;
  if (result.transport == "shm") return {ranks, stage};
  return {result.transport == "shm+tcp" ? ranks / result.hosts : 1, stage};
}

Board make_board(const std::vector<Result>& results, Bytes stage) {
  const plan::AlgorithmSettings built_in{Config()};
  Board board;
  for (const Result& result : results) {
    if (!result.backend.starts_with(kPrefix)) continue;
    const std::string algorithm = result.backend.substr(kPrefix.size());
    Scores& scores = board[result.the_case.op][bytes_of(result.the_case)];
    add(result.time, scores[algorithm]);
    const Surroundings where = surroundings_of(result, stage);
    if (algorithm == algorithm_of(built_in, result.the_case, where)) {
      add(result.time, scores[kBuiltIn]);
    }
  }
  return board;
}

/// Whether `score` is better by the minimum gain, and in at least three of four rounds.
bool beats(const Score& score, const Score& other) {
  const std::size_t rounds = std::min(score.rounds.size(), other.rounds.size());
  const double worth = rounds > 1 ? kWorthIt : kWorthItOnce;
  if (score.all >= other.all + score.cases * std::log(1 - worth)) return false;
  std::size_t won = 0;
  for (std::size_t i = 0; i < rounds; ++i) won += score.rounds[i] < other.rounds[i] ? 1 : 0;
  return 4 * won >= 3 * rounds;
}

/// The best algorithm among those with the most cases, if it beats the built-in choice. Returns
/// `before` instead if that also beats the built-in choice and the best one does not beat `before`.
std::string winner(const Scores& scores, const std::string& before) {
  int most = 0;
  for (const auto& [name, score] : scores) most = std::max(most, score.cases);
  const std::string* best = nullptr;
  for (const auto& [name, score] : scores) {
    if (name == kBuiltIn || score.cases < most) continue;
    if (best == nullptr || score.all < scores.at(*best).all) best = &name;
  }
  if (best == nullptr) return kBuiltIn;
  const auto wins = [&](const std::string& name, const std::string& over) {
    const auto other = scores.find(over);
    const bool is_comparable = other != scores.end() && other->second.cases == most;
    return !is_comparable || beats(scores.at(name), other->second);
  };
  if (!wins(*best, kBuiltIn)) return kBuiltIn;
  return wins(*best, before) || !wins(before, kBuiltIn) ? *best : before;
}

/// The last size of the range of the winner at `smaller`, if another algorithm won at `larger`. It
/// is the power of two closest to the geometric mean, among those from `smaller` to below `larger`,
/// so that each winner keeps its size. It is `smaller` if no power of two lies there.
Bytes between(Bytes smaller, Bytes larger) {
  const double mean =
      std::sqrt(static_cast<double>(smaller.value) * static_cast<double>(larger.value));
  Bytes border(std::int64_t{1} << std::lround(std::log2(mean)));
  if (border < smaller) border = border * 2;
  if (border >= larger) border = border / 2;
  return std::max(border, smaller);
}

/// Where a row applies that was measured with `transport`. Rows of `direct` and `inline` need no
/// condition, because these algorithms apply only on one host.
plan::Where where(std::string_view algorithm, std::string_view transport) {
  if (transport == "shm+tcp") return plan::Where::kLevels;
  if (transport != "shm") return plan::Where::kSeveralHosts;
  const bool is_local = algorithm == "direct" || algorithm == "inline";
  return is_local ? plan::Where::kAnywhere : plan::Where::kOneHost;
}

/// The lower end of the range of the smallest size.
Bytes below(Bytes smallest) { return smallest <= kSmall ? Bytes(-1) : smallest / 2; }

void add_rows(Op op,
              const std::map<Bytes, Scores>& sizes,
              const std::string& transport,
              plan::Table& table) {
  Bytes begin = below(sizes.begin()->first);
  Bytes previous = sizes.begin()->first;
  std::string holder = winner(sizes.begin()->second, kBuiltIn);
  const auto close = [&](Bytes end) {
    if (holder != kBuiltIn) {
      table.rows.push_back({.operation = operation_of(op),
                            .where = where(holder, transport),
                            .over = begin,
                            .up_to = end,
                            .algorithm = &plan::algorithm_named(holder)});
    }
    begin = end;
  };
  for (const auto& [size, scores] : sizes) {
    const std::string next = winner(scores, holder);
    if (next != holder) close(between(previous, size));
    holder = next;
    previous = size;
  }
  close(previous);
}

}  // namespace

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const plan::Algorithm& algorithm : plan::algorithms()) names.emplace_back(algorithm.name);
  return names;
}

std::string tuned_backend(const std::string& algorithm) { return std::string(kPrefix) + algorithm; }

plan::Table tune(const std::vector<Result>& results, Bytes stage) {
  plan::Table table;
  for (const auto& [op, sizes] : make_board(results, stage)) {
    add_rows(op, sizes, results.front().transport, table);
  }
  return table;
}

}  // namespace peal::bench
