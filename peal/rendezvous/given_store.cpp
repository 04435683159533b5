#include "peal/rendezvous/given_store.h"

#include <unistd.h>

#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/net/mac.h"
#include "peal/net/proof.h"
#include "peal/rendezvous/open_store.h"
#include "peal/rendezvous/roll_call.h"
#include "peal/rendezvous/store_location.h"
#include "peal/rendezvous/url.h"

namespace peal::rendezvous {
namespace {

constexpr const char* kPlace = "place";

bool puts_all_here(const LauncherEnvironment& launch) {
  const bool is_by_hand = launch.launcher == Launcher::kNone ||
                          (launch.launcher == Launcher::kEnvironment && launch.job.empty());
  const Identity& self = launch.identity;
  return !is_by_hand && launch.local_is_known && self.local_world_size == self.world_size;
}

/// Whether the launcher has put the whole job on this machine. The ranks of the request are a part
/// of that job.
bool puts_whole_job_here(const Environment& environment) {
  try {
    return puts_all_here(read_launcher_environment({}, parse_url("env://"), environment));
  } catch (const Error&) {  // the environment describes no job, or contradicts itself
    return false;
  }
}

std::string await_place(store::Store& given, const MeetContext& context) {
  while (true) {
    try {
      return given.get(kPlace, context.deadline.within(kLookForEndsEvery));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kTimeout) throw;
    }
    if (context.deadline.passed()) {
      throw missing_ranks_error(kRank0,
                                static_cast<std::size_t>(context.launch.identity.world_size),
                                "did not join the group in time",
                                kAdviceIfNotStarted);
    }
    let_interrupt(context.interrupt);
    context.ended.check(kRank0, "served the meeting");
  }
}

}  // namespace

bool is_all_here(const MeetRequest& request,
                 const LauncherEnvironment& launch,
                 const Environment& environment) {
  switch (request.ranks) {
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
                                                   const MeetContext& context) {
  const bool serves = context.launch.identity.rank == 0;
  const std::string name = serves ? fmt::format("peal.{}.{}", ::getuid(), net::random_hex(32))
                                  : await_place(given, context);
  auto store = open_store(StoreAtSocket{name}, context);
  if (serves) given.set(kPlace, name);
  return store;
}

void check_secrecy_of_given(const MeetContext& context) {
  const Config& config = context.config;
  const LauncherEnvironment& launch = context.launch;
  net::check({config.secret, launch.job, "", link_protection_of(config)});
  if (!config.secret.empty() || launch.identity.rank != 0) return;
  context.report(
      "no secret was given (PEAL_SECRET), so rank 0 makes one and hands it to the others "
      "through the store in which they meet: every program that reaches that store can join "
      "the job and read and change its data; set PEAL_SECRET to prevent this");
}

}  // namespace peal::rendezvous
