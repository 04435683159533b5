// The folder in which the ranks of a launch keep the records of their last operations, and what the
// launcher adds to it: how their processes have ended. Made by the program `peal run`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/private_folder.h"
#include "peal/launch/rank_process.h"
#include "peal/launch/report.h"
#include "peal/observe/end_file.h"

namespace peal::launch {

/// A private folder, that ends with this; or one that the user has named, which stays. It may be
/// none, since nobody has to do without a run for want of a record.
/// Threads: one, and before a Guard is made, which keeps a private folder while there are ranks.
class Flights final {
 public:
  /// `variables`: what the user has set for the ranks. Where that names a folder, the ends that
  /// former launches have left there are removed.
  explicit Flights(const Variables& variables);

  /// For Job::flights; empty where the user has named one, or none is to be had.
  std::string private_folder() const;
  /// Where the ranks keep their records; empty: nowhere.
  const std::string& folder() const { return folder_; }
  /// Why there is none that the user has not done without; empty: there is one.
  const std::string& problem() const { return problem_; }

 private:
  std::optional<PrivateFolder> private_;
  std::string folder_;
  std::string problem_;
};

/// Where the ranks look for ends, as their environment says it.
observe::EndPlace end_place_of(const std::vector<RankProcess>& ranks);

/// Leaves there how a rank has ended, now. What cannot be written is not: nothing else depends on
/// it.
void leave_end(const observe::EndPlace& place, const ProcessEnd& end);

}  // namespace peal::launch
