#include "peal/init/own_job.h"

#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/record_holder.h"

namespace peal::init {
namespace {

/// A helper of a rank has the environment of the rank, and may use the same rank number.
bool is_another_process_of_the_rank(const Environment& environment, Rank rank) {
  const std::string folder = environment(kFlightDirVariable).value_or("");
  if (folder.empty() || !is_inherited(environment, kFlightDirVariable)) return false;
  const std::string job = environment("PEAL_JOB").value_or("");
  return observe::holder_of_record(observe::flight_file_in(folder, rank), job) ==
         observe::RecordHolder::kAnother;
}

}  // namespace

Relation relation_of(const rendezvous::MeetRequest& request, const Environment& environment) {
  try {
    const rendezvous::Identity self = rendezvous::identify(request, environment);
    const Relation found = relation(environment, self.rank, self.world_size);
    if (found == Relation::kRank && is_another_process_of_the_rank(environment, self.rank)) {
      return Relation::kOtherRank;
    }
    return found;
  } catch (const Error&) {
    return Relation::kRank;  // the meeting fails with the same error
  }
}

}  // namespace peal::init
