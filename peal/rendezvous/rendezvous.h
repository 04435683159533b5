// How ranks find each other. From a URL and the environment, `meet` makes the rank, the world size
// and a store that all ranks share. The ranks then exchange their addresses through this store.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/interrupt.h"
#include "peal/base/report.h"
#include "peal/base/units.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/observe/end_file.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// How the meeting ranks relate to the launcher's job. Decides whether the launcher's variables can
/// prove that all of them are on this machine (`is_all_here`), and whether `meet` warns
/// of links without TLS.
enum class RanksOf : unsigned char {
  kWholeJob,   // all ranks that the launcher started
  kPartOfJob,  // some of these ranks, numbered anew
  kOthers,     // may include processes that this launcher did not start
};

/// The application's settings. The environment supplies the fields that are not set.
struct MeetRequest {
  std::string url =
      "env://";  // env://, tcp://host:port, file:///path; rank= and world_size= as query
  std::optional<Rank> rank;
  std::optional<int> world_size;
  /// A store that the ranks share already; they meet there. Of the URL only rank= and world_size=
  /// count then. Each meeting in the store needs keys of its own (store::make_prefix_store).
  std::shared_ptr<store::Store> store = nullptr;
  RanksOf ranks = RanksOf::kWholeJob;
};

struct Identity {
  Rank rank = 0;
  int world_size = 1;
  Rank local_rank = 0;
  int local_world_size = 1;
  std::string
      source;  // "torchrun", "Slurm", "Open MPI", "MPICH", "environment", "arguments", "alone"

  friend bool operator==(const Identity&, const Identity&) = default;
};

/// Pure. The rank and the world size come from, in this order: the request's own fields, its URL's
/// query, RANK and WORLD_SIZE (torchrun's too), Open MPI, MPICH and others that use Hydra, Slurm.
/// Launchers that start one process on each node come last (node_variables.h).
/// If none of these gives the local rank and size, the result assumes that all ranks are on this
/// host; `meet` corrects that later. If nothing is set and the URL is env://, the process is alone:
/// rank 0 of 1.
/// Errors: usage, which names the variable that is missing or wrong and what to do.
Identity identify(const MeetRequest& request, const Environment& environment);

/// A store that all ranks of the job share, and the identity that was registered in it.
struct Meeting {
  Identity identity;
  std::string self;  // this process, for messages: "process 7 on b"
  std::string job;   // the same on all ranks, different from other jobs
  /// The secret for the connections between ranks: the config's, if it has one. Otherwise rank 0
  /// makes a secret and hands it out through the store. The last rank to read it deletes it there.
  Secret secret;
  observe::EndPlace ends;   // the folder where the launcher records how ranks end, if it does
  bool is_one_host = true;  // whether all ranks can share memory and unix sockets
  /// The first rank that cannot make shared memory, and why. Empty if all can, or if the config
  /// fixes the transport. If this is set, the ranks use TCP everywhere.
  std::optional<std::string> no_shared_memory = {};
  /// In tcp:// rank 0 serves the store until rank 0 releases it. The release takes up to 0.3 s
  /// while other ranks still use the store. The other ranks get peer_lost afterwards.
  std::shared_ptr<store::Store> store;
};

/// Meets the other ranks of the job. For env:// choose_place (store_location.h) chooses the place.
/// Again: processes may meet several times at the same place.
///   A process that has released the store of its earlier meeting waits until all other processes
///   have released it too, at most until the deadline.
///   A process that still holds that store is rejected within a second while the store is served
///   (in a file: only if it comes as the same rank).
/// Given store: other programs may be able to write to a store that the application gives.
///   If the launcher has put all ranks on this machine, they read only the name of a unix socket
///   from it; rank 0 serves the meeting's store at this socket.
///   Otherwise every value in the store carries a seal that is made with the job's secret.
/// Errors: all before the deadline:
///   usage, on all ranks that have come: a duplicate rank; different world sizes; in a given store,
///     TLS without a secret, or a value without the job's seal;
///   usage, on the rank concerned: another secret (the others time out and report the rejection);
///   usage: no secret, although other machines can reach the place and PEAL_INSECURE is not set;
///   resource: the port is taken;
///   timeout, which names the missing ranks, rank 0 included;
///   peer_lost: a rank ended during the meeting. If the launcher records ends in PEAL_FLIGHT_DIR,
///     also a rank that ended before it joined, within a second;
///   errors of a given store.
/// Reports: rejected strangers; a secret that is waived. On rank 0 also: a made secret that is only
///   as safe as the given store; ranks on several machines without TLS.
/// A group of one needs no network and gets a memory store.
/// `interrupt` ends the meeting by throwing; `meet` rethrows what it threw. Ranks that have come
/// by then get the error aborted at once.
Meeting meet(const MeetRequest& request,
             const Config& config,
             const Environment& environment,
             Deadline deadline,
             const Report& report = silent_report(),
             const Interrupt& interrupt = {});

}  // namespace peal::rendezvous
