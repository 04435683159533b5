// The folder in which the ranks of a launch keep the records of their last operations, and to which
// the launcher adds how their processes have ended. Made by the program `peal run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "peal/launch/rank_command.h"
#include "peal/launch/report.h"
#include "peal/observe/end_file.h"
#include "peal/system/private_folder.h"

namespace peal::launch {

/// Where the ranks of a job keep their records.
struct RecordPlace {
  std::string folder;       // empty: no records
  bool is_private = false;  // the folder is removed after the job
};

/// A private folder that the destructor removes, or a folder that the user has named, which stays.
/// If no folder can be created, the run continues without records.
/// Threads: one. Make it before the Guard: the guard inherits the lock of a private folder, and so
/// keeps the folder while there are ranks.
class Flights final {
 public:
  /// `variables`: the environment that the user has set for the ranks. If they name a folder,
  /// removes the ends that earlier launches left there. If this is one of several nodes, removes
  /// only ends and records of its own ranks: other nodes may use the folder too, and earlier jobs
  /// may have had the same id.
  explicit Flights(const Variables& variables, const LaunchOptions& options = {});

  /// For JobContext::flights; empty if the user has named a folder, or if no folder can be created.
  std::string private_folder() const;
  /// Where the ranks keep their records; empty: no records.
  const std::string& folder() const { return folder_; }
  RecordPlace place() const { return {folder_, private_.has_value()}; }
  /// Why the folder is missing; empty if it exists, or if the user wants no records.
  const std::string& problem() const { return problem_; }

 private:
  std::optional<PrivateFolder> private_;
  std::string folder_;
  std::string problem_;
};

/// Where the ranks look for ends, by their environment.
observe::EndPlace end_place_of(const std::vector<RankCommand>& ranks);

/// Stores at once how a rank has ended. A failed write is ignored, because the report says in any
/// case how the rank ended.
void leave_end(const observe::EndPlace& place, const ProcessEnd& end);

}  // namespace peal::launch
