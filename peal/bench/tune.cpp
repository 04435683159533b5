#include "peal/bench/tune.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "peal/bench/algorithm.h"

namespace peal::bench {
namespace {

constexpr std::string_view kPrefix = "peal-";
/// What peal does without any row: the built-in choice of each case.
constexpr const char* kBuiltIn = "";
/// What another algorithm must win at least, as a part of the time; and where one round is all that
/// tells of it.
constexpr double kWorthIt = 0.05;
constexpr double kWorthItOnce = 0.2;
/// Up to here an operation takes the same time whatever its size.
constexpr Bytes kSmall = 256_B;

/// Of one way to do all cases of a size: sums of the logarithms of their times.
struct Score {
  double all = 0;
  std::vector<double> rounds;  // as many as all of the cases have
  int cases = 0;
};
using Scores = std::map<std::string, Score>;  // by algorithm, and kBuiltIn
/// By operation and size.
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
  const plan::Choices built_in{Config()};
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

/// Whether it wins by enough, and not in half of the rounds only: three of four at least.
bool beats(const Score& score, const Score& other) {
  const std::size_t rounds = std::min(score.rounds.size(), other.rounds.size());
  const double worth = rounds > 1 ? kWorthIt : kWorthItOnce;
  if (score.all >= other.all + score.cases * std::log(1 - worth)) return false;
  std::size_t won = 0;
  for (std::size_t i = 0; i < rounds; ++i) won += score.rounds[i] < other.rounds[i] ? 1 : 0;
  return 4 * won >= 3 * rounds;
}

/// The best of those that did as many cases as any, if it beats the built-in choice; `before` if it
/// does so too and is not beaten by the best.
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

/// Up to where the winner at `smaller` has it, this size included, where another won at `larger`:
/// the power of two next to their geometric mean of those from `smaller` up to below `larger`, so
/// that each has what it won; `smaller` itself where there is none.
Bytes between(Bytes smaller, Bytes larger) {
  const double mean =
      std::sqrt(static_cast<double>(smaller.value) * static_cast<double>(larger.value));
  Bytes border(std::int64_t{1} << std::lround(std::log2(mean)));
  if (border < smaller) border = border * 2;
  if (border >= larger) border = border / 2;
  return std::max(border, smaller);
}

/// Where a row counts that ranks found which had that transport. `direct` and `inline` say so
/// themselves, since they apply on one host only.
plan::Where where(std::string_view algorithm, std::string_view transport) {
  if (transport == "shm+tcp") return plan::Where::kLevels;
  if (transport != "shm") return plan::Where::kSeveralHosts;
  const bool is_local = algorithm == "direct" || algorithm == "inline";
  return is_local ? plan::Where::kAnywhere : plan::Where::kOneHost;
}

/// From where what was found at the smallest size counts.
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
