#include "peal/train/horovod/init_parts.h"

#include <c10/util/StringUtil.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include <climits>

#include "peal/base/error.h"
#include "peal/base/parse_number.h"
#include "peal/config/launch_mark.h"

namespace peal::hvd {
namespace {

std::string this_host() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

/// A variable of the launcher; kUnknown if it is not set to a number.
int number_in(const Environment& environment, const char* name) {
  const auto text = environment(name);
  return text ? try_parse_number<int>(*text).value_or(Place::kUnknown) : Place::kUnknown;
}

}  // namespace

std::string text_of(const std::vector<Rank>& ranks) { return "[" + c10::Join(", ", ranks) + "]"; }

Environment environment_of_rank() {
  Environment environment = process_environment();
  const int rank = number_in(environment, "RANK");
  const int size = number_in(environment, "WORLD_SIZE");
  if (rank == Place::kUnknown || size == Place::kUnknown) return environment;
  return own_environment(environment, relation(environment, rank, size));
}

Place own_place(const InitOptions& options,
                const Settings& settings,
                const Environment& environment) {
  Place place;
  place.host = settings.host.empty() ? this_host() : settings.host;
  if (!options.ranks.empty()) return place;  // the launcher has counted all ranks
  if (settings.local_rank || settings.rank) {
    place.local_rank = settings.local_rank.value_or(Place::kUnknown);
    place.local_size = settings.local_size.value_or(Place::kUnknown);
    place.cross_rank = settings.cross_rank.value_or(Place::kUnknown);
    place.cross_size = settings.cross_size.value_or(Place::kUnknown);
  } else {
    place.local_rank = number_in(environment, "LOCAL_RANK");
    place.local_size = number_in(environment, "LOCAL_WORLD_SIZE");
  }
  return place;
}

void set_elastic_place(Settings& settings, const rendezvous::ElasticAssignment& place) {
  settings.rank = place.rank;
  settings.size = place.size;
  settings.local_rank = place.local_rank;
  settings.local_size = place.local_size;
  settings.cross_rank = place.cross_rank;
  settings.cross_size = place.cross_size;
  settings.host = place.hostname;
}

peal::InitOptions meeting_of(const InitOptions& options, const Settings& settings) {
  peal::InitOptions meeting;
  meeting.interfaces = settings.interfaces;
  meeting.rank = settings.rank;
  meeting.world_size = settings.size;
  meeting.timeout = settings.timeout;
  meeting.report = settings.reports == Switch::kOn ? options.report : silent_report();
  meeting.interrupt = options.interrupt;
  if (options.ranks.empty()) return meeting;
  const Environment environment = process_environment();
  const Rank own = settings.rank.value_or(number_in(environment, "RANK"));
  const auto found = std::ranges::find(options.ranks, own);
  if (found == options.ranks.end()) {
    throw Error(ErrorKind::kUsage,
                c10::str("init: rank ",
                         own,
                         " is not among the ranks ",
                         text_of(options.ranks),
                         ": only these call init"));
  }
  meeting.rank = static_cast<Rank>(found - options.ranks.begin());
  meeting.world_size = static_cast<int>(options.ranks.size());
  meeting.is_whole_job = false;
  return meeting;
}

named::Options named_options_of(const InitOptions& options, const Settings& settings) {
  named::Options named;
  named.fusion_threshold = settings.fusion_threshold;
  named.cache_capacity = settings.cache_capacity;
  named.group_fusion = settings.group_fusion == Switch::kOn
                           ? named::Options::GroupFusion::kWithOthers
                           : named::Options::GroupFusion::kAlone;
  named.while_joined = options.while_joined == InitOptions::WhileJoined::kAll
                           ? named::Options::WhileJoined::kAll
                           : named::Options::WhileJoined::kAllReduceOnly;
  named.stall_warning = settings.stall_warning;
  // Horovod ends a job only after it has warned.
  named.stall_shutdown = settings.stall_warning > Timeout(0) ? settings.stall_shutdown : Timeout(0);
  named.report = settings.reports == Switch::kOn ? options.report : silent_report();
  named.whereabouts = options.whereabouts;
  named.interrupt = options.interrupt;
  return named;
}

}  // namespace peal::hvd
