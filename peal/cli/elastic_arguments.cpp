#include "peal/cli/elastic_arguments.h"

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/cli/rank_count.h"

namespace peal::cli {
namespace {

Error usage_error(const std::string& what) { return Error(ErrorKind::kUsage, what); }

}  // namespace

std::string ElasticArguments::name_of(const CountRange& nodes) const {
  return fmt::format("--nnodes {}:{}", nodes.least, nodes.most);
}

int ElasticArguments::ranks_on_each_host(const CountRange& nodes) const {
  if (const auto range = parse_range(counts_, wording_)) {
    throw usage_error(
        fmt::format("{} and {} {} both have a range: give one number of ranks for each "
                    "host, as in {} {}",
                    name_of(nodes),
                    wording_.count,
                    counts_.front(),
                    wording_.count,
                    range->most));
  }
  if (const auto count = parse_count(counts_, wording_)) return *count;
  if (const auto count = count_in(process_environment())) return *count;
  throw usage_error(fmt::format("{0}: how many ranks on each host? Use {1}, as in {0} {1} 2",
                                name_of(nodes),
                                wording_.count));
}

void ElasticArguments::take_ranges(HorovodSettings& settings) const {
  const auto nodes = node_range_of(torchrun_);
  auto ranks = parse_range(counts_, wording_);
  if (!nodes && !ranks) return;
  const std::string range =
      nodes ? name_of(*nodes) : fmt::format("{} {}", wording_.count, counts_.front());
  for (const char* const name : {"--min-np", "--max-np"}) {
    if (!settings.has(name)) continue;
    throw usage_error(fmt::format(
        "{} and {} both say how many ranks the job has: give only one of them", range, name));
  }
  if (nodes) {
    const int each = ranks_on_each_host(*nodes);
    ranks = CountRange{each * nodes->least, each * nodes->most};
    settings.values["--slots-per-host"] = {fmt::format("{}", each)};
  }
  settings.values["--min-np"] = {fmt::format("{}", ranks->least)};
  settings.values["--max-np"] = {fmt::format("{}", ranks->most)};
}

std::optional<launch::ElasticOptions> ElasticArguments::options(
    const HorovodSettings& settings) const {
  const auto nodes = node_range_of(torchrun_);
  const auto ranks = nodes ? std::nullopt : parse_count(counts_, wording_);
  auto options = elastic_of(settings, ranks, process_environment(), wording_);
  if (options && nodes) options->max_hosts = nodes->most;
  return options;
}

std::vector<launch::HostSlots> ElasticArguments::hosts(
    std::vector<launch::HostSlots> named, const launch::ElasticOptions& options) const {
  const auto nodes = node_range_of(torchrun_);
  if (nodes && named.empty()) {
    throw usage_error(
        fmt::format("{}: one launcher starts the ranks of all hosts: name the hosts by -H, "
                    "--hostfile or --host-discovery-script",
                    name_of(*nodes)));
  }
  if (nodes) {
    for (launch::HostSlots& host : named) host.slots = options.slots;
  }
  if (named.empty() && parse_range(counts_, wording_)) {
    named.push_back({.name = launch::kDefaultHost, .slots = *options.max_ranks});
  }
  return named;
}

void refuse_in_elastic_job(const std::string& option,
                           const std::string& value,
                           const std::string& instead) {
  if (value.empty()) return;
  throw usage_error(fmt::format(
      "{} has no effect in an elastic job, whose ranks change: leave it out, and {} instead",
      option,
      instead));
}

}  // namespace peal::cli
