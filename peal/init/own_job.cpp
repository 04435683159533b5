#include "peal/init/own_job.h"

#include "peal/base/error.h"
#include "peal/observe/flight_folder.h"
#include "peal/observe/record_holder.h"

namespace peal::init {
namespace {

/// A helper of a rank has the environment of the rank, and may even give itself the same number.
bool is_another_process_of_the_rank(const Environment& environment, Rank rank) {
  const std::string folder = environment("PEAL_FLIGHT_DIR").value_or("");
  if (folder.empty() || !is_inherited(environment, "PEAL_FLIGHT_DIR")) return false;
  const std::string job = environment("PEAL_JOB").value_or("");
  return observe::holder_of_record(observe::flight_file_in(folder, rank), job) ==
         observe::RecordHolder::kAnother;
}

}  // namespace

Kinship kinship_of(const rendezvous::Wish& wish, const Environment& environment) {
  try {
    const rendezvous::Identity self = rendezvous::identify(wish, environment);
    const Kinship found = kinship(environment, self.rank, self.world_size);
    if (found == Kinship::kRank && is_another_process_of_the_rank(environment, self.rank)) {
      return Kinship::kOtherRank;
    }
    return found;
  } catch (const Error&) {
    return Kinship::kRank;  // the meeting fails with the same error
  }
}

}  // namespace peal::init
