#include "peal/rendezvous/given_store.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/rendezvous/open_store.h"
#include "peal/rendezvous/place.h"
#include "peal/rendezvous/roll_call.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {
namespace {

constexpr const char* kPlace = "place";

bool puts_all_here(const Launch& launch) {
  const bool is_by_hand = launch.launcher == Launcher::kNone ||
                          (launch.launcher == Launcher::kEnvironment && launch.job.empty());
  const Identity& self = launch.identity;
  return !is_by_hand && launch.local_is_known && self.local_world_size == self.world_size;
}

/// What the environment says of the job, of which the ranks of the wish are some.
bool puts_whole_job_here(const Environment& environment) {
  try {
    return puts_all_here(read_launch({}, parse_url("env://"), environment));
  } catch (const Error&) {  // the environment speaks of no job, or contradicts itself
    return false;
  }
}

std::string await_place(store::Store& given,
                        const Launch& launch,
                        const EndedRanks& ended,
                        Deadline deadline,
                        const Interrupt& interrupt) {
  while (true) {
    try {
      return given.get(kPlace, deadline.within(kLookForEndsEvery));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
    }
    if (deadline.passed()) {
      throw absence(kRank0,
                    static_cast<std::size_t>(launch.identity.world_size),
                    "did not come to the meeting in time",
                    kLookAtTheirStart);
    }
    let_interrupt(interrupt);
    ended.check(kRank0, "served the meeting");
  }
}

}  // namespace

bool is_all_here(const Wish& wish, const Launch& launch, const Environment& environment) {
  switch (wish.ranks) {
    case RanksOf::kWholeJob:
      return puts_all_here(launch);
    case RanksOf::kPartOfJob:
      return puts_whole_job_here(environment);
    case RanksOf::kOthers:
      break;
  }
  return false;
}

std::shared_ptr<store::Store> open_on_this_machine(store::Store& given,
                                                   const Launch& launch,
                                                   const Config& config,
                                                   const EndedRanks& ended,
                                                   Deadline deadline,
                                                   const Report& report,
                                                   const Interrupt& interrupt) {
  const bool serves = launch.identity.rank == 0;
  const std::string name = serves ? fmt::format("peal.{}.{}", ::getuid(), net::random_hex(32))
                                  : await_place(given, launch, ended, deadline, interrupt);
  auto store = open_store(LocalPlace{name}, launch, config, ended, deadline, report, interrupt);
  if (serves) given.set(kPlace, name);
  return store;
}

void check_secrecy_of_given(const Launch& launch, const Config& config, const Report& report) {
  net::check({config.secret, launch.job, "", sealing_of(config)});
  if (!config.secret.empty() || launch.identity.rank != 0) return;
  report(Severity::kWarning,
         "no secret was given (PEAL_SECRET), so rank 0 makes one and hands it to the others "
         "through the store in which they meet: every program that reaches that store can join "
         "them, read what they send and change it");
}

}  // namespace peal::rendezvous
