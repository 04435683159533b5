#include "peal/train/trainer/metrics.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/split.h"

namespace peal::train {
namespace {

/// The names of the first rank that has any, on every rank.
std::string names_of_all(ProcessGroup& group, std::string mine, Timeout timeout) {
  // The largest number belongs to the lowest rank with names.
  std::vector<std::int64_t> first = {mine.empty() ? 0 : group.size() - group.rank(),
                                     std::ssize(mine)};
  group.all_reduce(first, {.op = ReduceOp::kMax, .timeout = timeout});
  if (first[0] == 0) return {};
  std::vector<std::uint8_t> text(mine.begin(), mine.end());
  text.resize(static_cast<std::size_t>(first[1]));
  group.broadcast(text, static_cast<Rank>(group.size() - first[0]), {.timeout = timeout});
  std::string names(text.begin(), text.end());
  names.resize(std::min(names.find('\0'), names.size()));
  return names;
}

/// "a\nb\n" -> "a, b"
std::string in_one_line(const std::string& names) {
  std::string line;
  for (const std::string_view name : split(names, '\n')) {
    if (!name.empty()) line.append(line.empty() ? "" : ", ").append(name);
  }
  return line.empty() ? "no names" : line;
}

}  // namespace

void Metrics::add(const std::string& name, double mean, double samples) {
  if (name.empty() || name.find_first_of(std::string_view("\n\0", 2)) != std::string::npos) {
    throw Error(ErrorKind::kUsage, "the name of a metric is one line of text, and not empty");
  }
  Sum& sum = sums_[name];
  if (samples == 0) return;  // the mean of nothing is not a number
  sum.weighted += mean * samples;
  sum.samples += samples;
}

std::map<std::string, double> Metrics::reduce(ProcessGroup& group, Timeout timeout) const {
  std::string mine;
  for (const auto& [name, sum] : sums_) mine += name + '\n';
  const std::string all = names_of_all(group, mine, timeout);
  std::vector<double> totals;
  for (const std::string_view name : split(all, '\n')) {
    const auto found = sums_.find(std::string(name));
    const Sum sum = found == sums_.end() ? Sum() : found->second;
    totals.insert(totals.end(), {sum.weighted, sum.samples});
  }
  totals.push_back(mine.empty() || mine == all ? 0 : 1);  // whether the names differ
  group.all_reduce(totals, {.timeout = timeout});
  if (totals.back() > 0) {
    throw Error(ErrorKind::kMismatch,
                "ranks have collected metrics of different names; rank " +
                    std::to_string(group.rank()) + " has " + in_one_line(mine) +
                    ": add the same names on every rank that has data");
  }
  std::map<std::string, double> means;
  std::size_t i = 0;
  for (const std::string_view name : split(all, '\n')) {
    if (!name.empty()) means[std::string(name)] = totals[i] / totals[i + 1];
    i += 2;
  }
  return means;
}

std::map<std::string, double> Metrics::local() const {
  std::map<std::string, double> means;
  for (const auto& [name, sum] : sums_) means[name] = sum.weighted / sum.samples;
  return means;
}

}  // namespace peal::train
