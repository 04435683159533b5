#include "peal/launch/elastic/round_records.h"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "peal/launch/post_mortem.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight_folder.h"

namespace peal::launch::elastic {

RoundRecords::RoundRecords(RecordPlace place, std::string job)
    : place_(std::move(place)), job_(std::move(job)) {}

std::string RoundRecords::begin(int round) {
  folder_.clear();
  if (place_.folder.empty()) return "";
  if (place_.is_private) {
    std::error_code stays;
    std::filesystem::remove_all(observe::round_folder_in(place_.folder, round - kRoundsKept),
                                stays);
  }
  const std::string folder = observe::round_folder_in(place_.folder, round);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return "";
  observe::remove_end_files(folder);
  return folder_ = folder;
}

void RoundRecords::add(const ElasticEnd& end) const {
  leave_end({.folder = folder_, .job = job_}, as_process_end(end));
}

}  // namespace peal::launch::elastic

namespace peal::launch {

std::optional<PostMortem> examine(const ElasticReport& report,
                                  const RecordPlace& place,
                                  const std::string& job,
                                  const LaunchOptions& options) {
  if (report.why_badly.empty() || report.rounds.empty() || place.folder.empty()) {
    return std::nullopt;
  }
  const ElasticRound& last = report.rounds.back();
  LaunchOptions of_round = options;
  of_round.ranks = last.size;
  return examine(ends_of_last_round(report),
                 {.folder = observe::round_folder_in(place.folder, last.number),
                  .is_private = place.is_private},
                 job,
                 of_round);
}

}  // namespace peal::launch
