#include "peal/bench/baseline.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "peal/base/error.h"
#include "peal/bench/json_lines.h"

namespace peal::bench {
namespace {

using Json = nlohmann::json;

/// The conditions that differ from the defaults: ", rate 1gbit, PEAL_ALGORITHM=ring".
std::string text_of(const Conditions& conditions) {
  std::string text;
  if (!conditions.rate.empty()) text += ", rate " + conditions.rate;
  if (conditions.rewriting == Rewriting::kNone) text += ", untouched";
  if (!conditions.congestion.empty()) text += ", congestion control " + conditions.congestion;
  if (!conditions.algorithm.empty()) text += ", PEAL_ALGORITHM=" + conditions.algorithm;
  if (!conditions.tune.empty()) text += ", PEAL_TUNE=" + conditions.tune;
  if (!conditions.stage.empty()) text += ", PEAL_STAGE=" + conditions.stage;
  return text;
}

/// Lines of older versions lack some fields; those conditions did not exist then.
Conditions conditions_in(const Json& line) {
  const auto text = [&](const char* field) {
    const auto found = line.find(field);
    return found == line.end() || found->is_null() ? "" : found->get<std::string>();
  };
  return {.rate = text("rate"),
          .congestion = text("congestion"),
          .algorithm = text("peal_algorithm"),
          .tune = text("peal_tune"),
          .stage = text("peal_stage"),
          .rewriting = line.value("untouched", false) ? Rewriting::kNone : Rewriting::kInputs};
}

std::string what_of(const Json& line) {
  return fmt::format("{} {} np={} hosts={} {} B{} {} {}{}",
                     line.at("op").get<std::string>(),
                     line.at("dtype").get<std::string>(),
                     line.at("np").get<int>(),
                     line.at("hosts").get<int>(),
                     line.at("bytes").get<std::int64_t>(),
                     line.at("in_place").get<bool>() ? " in place" : "",
                     line.at("variant").get<std::string>(),
                     line.at("transport").get<std::string>(),
                     text_of(conditions_in(line)));
}

Reached parse(const Json& line) {
  Reached reached{what_of(line), line.at("times_faster").get<std::map<std::string, double>>()};
  const Json& floor = line.at("floor_fraction");
  if (!floor.is_null()) reached.ratios["floor"] = floor.get<double>();
  return reached;
}

/// The library's text without its prefix "[json.exception.parse_error.101] ".
std::string_view sentence_of(const Json::exception& error) {
  const std::string_view text = error.what();
  const auto end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

/// The first case, and the number of the others.
std::string first_and_count(const std::vector<Reached>& all) {
  if (all.empty()) return "none of peal";
  const std::string more = all.size() == 1 ? "" : fmt::format(" and {} more", all.size() - 1);
  return fmt::format("\"{}\"{}", all.front().what, more);
}

}  // namespace

std::vector<Reached> reached_by(const std::vector<Result>& results) {
  std::string lines;
  for (const Result& result : results) lines += to_json_line(result);
  return parse_baseline(lines);
}

std::vector<Reached> parse_baseline(std::string_view lines) {
  std::vector<Reached> all;
  for (int number = 1; !lines.empty(); ++number) {
    const auto end = std::min(lines.find('\n'), lines.size());
    const std::string_view text = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    if (text.empty()) continue;
    try {
      const Json line = Json::parse(text);
      if (line.at("backend") == "peal") all.push_back(parse(line));
    } catch (const Json::exception& error) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("line {} of the baseline is not what `peal bench --json` writes: {}",
                              number,
                              sentence_of(error)));
    }
  }
  return all;
}

void check_common_case(const std::vector<Reached>& baseline, const std::vector<Reached>& planned) {
  const bool is_known = std::ranges::any_of(planned, [&](const Reached& reached) {
    return std::ranges::count(baseline, reached.what, &Reached::what) > 0;
  });
  if (is_known) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format(
          "the baseline and this run have no case in common: the baseline has {}, this run has {}",
          first_and_count(baseline),
          first_and_count(planned)));
}

Comparison compare_with(const std::vector<Reached>& baseline,
                        const std::vector<Reached>& now,
                        double tolerance) {
  Comparison comparison;
  for (const Reached& reached : now) {
    const auto before = std::ranges::find(baseline, reached.what, &Reached::what);
    if (before == baseline.end()) continue;
    for (const auto& [name, ratio] : reached.ratios) {
      const auto old = before->ratios.find(name);
      if (old == before->ratios.end()) continue;
      ++comparison.compared;
      if (ratio >= tolerance * old->second) continue;
      comparison.worse.push_back({reached.what, name, old->second, ratio});
    }
  }
  return comparison;
}

std::string describe(const std::vector<SlowerCase>& worse) {
  std::string table;
  for (const SlowerCase& one : worse) {
    table += fmt::format("{:<56} {:<8} was {:8.2f}, is {:8.2f}\n",
                         one.what,
                         one.ratio == "floor" ? one.ratio : "x " + one.ratio,
                         one.before,
                         one.now);
  }
  return table;
}

}  // namespace peal::bench
