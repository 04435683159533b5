// The records of an elastic job, for `peal why`: each round has a folder, in which its ranks record
// their last operations, and to which the driver adds how they ended. Called by driver.cpp, and by
// the program at the end of a job.
#pragma once

#include <optional>
#include <string>

#include "peal/launch/elastic/elastic_report.h"
#include "peal/launch/flights.h"
#include "peal/launch/options.h"

namespace peal::launch::elastic {

/// How many rounds keep their records in a private place. Each takes some 430 KB for each rank.
inline constexpr int kRoundsKept = 16;

class RoundRecords final {
 public:
  /// `place`: the records of all rounds, with a folder for each. `job`: PEAL_JOB.
  RoundRecords(RecordPlace place, std::string job);

  /// Creates the folder of the round. If it exists, removes the ends of ranks of an earlier job. In
  /// a private place, also removes the folder of the round that is kRoundsKept older. Returns the
  /// path; empty if there are no records, or if the folder cannot be created.
  std::string begin(int round);
  /// Stores how a rank of the round has ended. A failed write is ignored.
  void add(const ElasticEnd& end) const;

 private:
  const RecordPlace place_;
  const std::string job_;
  std::string folder_;  // of the current round
};

}  // namespace peal::launch::elastic

namespace peal::launch {

/// Like `examine` of a launch (post_mortem.h), for the last round of an elastic job that has
/// failed.
std::optional<PostMortem> examine(const ElasticReport& report,
                                  const RecordPlace& place,
                                  const std::string& job,
                                  const LaunchOptions& options);

}  // namespace peal::launch
