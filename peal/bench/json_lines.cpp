#include "peal/bench/json_lines.h"

#include <nlohmann/json.hpp>

namespace peal::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson registered(const Result& result) {
  if (result.variant == "registered") return true;
  if (result.variant == "foreign") return false;
  return nullptr;
}

OrderedJson or_null(const std::string& text) {
  return text.empty() ? OrderedJson(nullptr) : OrderedJson(text);
}

}  // namespace

std::string to_json_line(const Result& result) {
  const Case& c = result.the_case;
  OrderedJson line = {
      {"op", name_of(c.op)},
      {"backend", result.backend},
      {"transport", result.transport},
      {"dtype", name_of(c.dtype)},
      {"np", c.ranks},
      {"hosts", result.hosts},
      {"bytes", bytes_of(c).value},
      {"in_place", place_of(c) == BlockPlace::kIn},
      {"registered", registered(result)},
      {"variant", result.variant},
      {"algorithm", or_null(result.algorithm)},
      {"median_us", result.time.median},
      {"p99_us", result.time.p99},
      {"min_us", result.time.least},
      {"max_us", result.time.most},
      {"rounds", result.time.rounds},
      {"samples", result.time.samples},
      {"algbw_gbps", algorithm_bandwidth(result)},
      {"busbw_gbps", bus_bandwidth(result)},
      {"floor_fraction",
       result.floor_fraction ? OrderedJson(*result.floor_fraction) : OrderedJson(nullptr)},
      {"times_faster", result.times_faster},
      {"note", result.note},
      {"rate", or_null(result.conditions.rate)},
      {"congestion", or_null(result.conditions.congestion)},
      {"untouched", result.conditions.rewriting == Rewriting::kNone},
      {"peal_algorithm", or_null(result.conditions.algorithm)},
      {"peal_tune", or_null(result.conditions.tune)},
      {"peal_stage", or_null(result.conditions.stage)},
  };
  if (result.traffic) {
    const auto& qdisc = result.traffic->qdisc_bytes;
    line["host_tx_bytes"] = result.traffic->interface_bytes;
    line["host_qdisc_bytes"] = qdisc ? OrderedJson(*qdisc) : OrderedJson(nullptr);
  }
  return line.dump() + "\n";
}

}  // namespace peal::bench
