// How ranks find each other: from a URL and the environment to (rank, world size, a Store), and
// from a Store to where everybody listens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/interrupt.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/observe/end_file.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Which ranks meet, as far as it helps to know where they are.
enum class RanksOf : unsigned char {
  kWholeJob,   // all that the launcher has started
  kPartOfJob,  // some of them, with numbers of their own
  kOthers,     // perhaps processes that this launcher has not started
};

/// What the application says; what it leaves open comes from the environment.
struct Wish {
  std::string url =
      "env://";  // env://, tcp://host:port, file:///path; rank= and world_size= as query
  std::optional<Rank> rank;
  std::optional<int> world_size;
  /// Where the ranks meet that share a store already; the URL only says what an URL can say of
  /// ranks then. Each meeting in it needs keys of its own (store::make_prefix_store).
  std::shared_ptr<store::Store> store = nullptr;
  RanksOf ranks = RanksOf::kWholeJob;
};

/// Who this process is.
struct Identity {
  Rank rank = 0;
  int world_size = 1;
  Rank local_rank = 0;
  int local_world_size = 1;
  std::string
      source;  // "torchrun", "Slurm", "Open MPI", "MPICH", "environment", "arguments", "alone"

  friend bool operator==(const Identity&, const Identity&) = default;
};

/// Pure. The rank and the world size come from, in this order: the wish's own fields, its URL's
/// query, RANK and WORLD_SIZE (torchrun's too), Open MPI, MPICH and others that use Hydra, Slurm.
/// Where nobody says the local rank and size, they stand for ranks that are all on this host;
/// `meet` knows better. Errors: usage, which names the variable that is missing or wrong and what
/// to do. A process for which nothing at all is set, with the URL env://, is alone: rank 0 of 1.
Identity identify(const Wish& wish, const Environment& environment);

/// A store that all ranks of the job share, and the identity that was registered in it.
struct Meeting {
  Identity identity;
  std::string self;  // this process, for messages: "process 7 on b"
  std::string job;   // the same on all ranks, different from other jobs
  /// For the connections between ranks: the config's. Without one, rank 0 makes a secret and hands
  /// it out through the store, from which it is deleted when all ranks have read it.
  Secret secret;
  observe::EndPlace ends;   // where a launcher notes how its ranks end, if one does
  bool is_one_host = true;  // whether all ranks can share memory and unix sockets
  /// The first rank that cannot make shared memory, and why, if there is one and the config leaves
  /// the transport open. The ranks then use TCP everywhere.
  std::optional<std::string> no_shared_memory = {};
  /// Rank 0 of tcp:// serves it until it lets go, which takes up to 0.3 s while others still use
  /// it; the others see peer_lost afterwards.
  std::shared_ptr<store::Store> store;
};

/// Meets the others. Where env:// leads is told at choose_place (place.h). Processes may meet again
/// at the same place: who comes back before all others have let go of the first meeting's store
/// waits for them, until the deadline; who still holds it itself, while it is served, is refused
/// within a second (in a file: as the same rank).
/// A store that was given may be one to which other programs write. Where the launcher has put all
/// ranks on this machine, they take no more from it than the name of a unix socket, at which rank 0
/// serves the store of the meeting. Elsewhere every value in it bears a seal of the job's secret.
/// Errors, all inside the deadline: usage (a rank given twice, ranks that disagree on the world
/// size, another secret: on all ranks that have come; no secret where other machines can come to
/// the place and nothing waives it; TLS without a secret in a store that was given; a value there
/// without the job's seal), resource (a taken port), timeout (the ranks that are missing, rank 0
/// included), peer_lost (one has ended meanwhile; or, under a launcher that notes how ranks end in
/// PEAL_FLIGHT_DIR, before it came: within a second); what a store that was given throws.
/// Reports: strangers; a secret that is waived; by rank 0, a secret that is only as safe as the
/// store that was given, and ranks on several machines without TLS.
/// A group of one needs no network and gets a memory store.
/// `interrupt` ends it by throwing, and is what this throws then; those who have met by then hear
/// of it at once, as peer_lost.
Meeting meet(const Wish& wish,
             const Config& config,
             const Environment& environment,
             Deadline deadline,
             const Report& report = silent_report(),
             const Interrupt& interrupt = {});

}  // namespace peal::rendezvous
