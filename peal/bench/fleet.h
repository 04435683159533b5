// A fleet: the workers of one backend, as processes to start. The functions here only prepare
// fleets; `Session` (session.h) starts the fleets and talks to them.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "peal/bench/flags.h"
#include "peal/bench/host_net.h"
#include "peal/config/config.h"
#include "peal/launch/job_context.h"
#include "peal/launch/rank_command.h"
#include "peal/system/fd.h"
#include "peal/system/private_folder.h"

namespace peal::bench {

struct Fleet {
  std::string backend;    // "peal", "probe", "gloo", "openmpi", ...: its name among the fleets
  std::string transport;  // for the report: "shm", "tcp", "default"
  std::vector<std::string> variants = {"default"};  // each case is measured in each variant
  int ranks = 0;
  std::vector<launch::RankCommand> processes = {};  // one for each rank, or one launcher
  std::vector<Fd> memory = {};     // shared files for the workers: flags, and other memory
  launch::NewJobContext job = {};  // of peal's ranks; reserves their port
  std::unique_ptr<PrivateFolder> segments = {};  // for named shared memory
};

/// A backend that cannot be measured, and the reason.
struct Absent {
  std::string backend;
  std::string reason;
};
using FleetOrAbsent = std::variant<Fleet, Absent>;

/// The common settings of all fleets of a session.
struct Setup {
  int ranks = 2;
  /// The CPUs of each rank: one core for each, in the machine's order, for all backends except gloo
  /// and the stream. Empty if there are more ranks than cores.
  std::vector<std::vector<int>> cpus;
  Waiting waiting = Waiting::kSpin;
  std::string socket = {};   // of the coordinator
  std::string program = {};  // the path of this program
  launch::Variables inherited = {};
  const PrivateFolder* folder = nullptr;
  const HostNet* net = nullptr;  // null: all ranks are on this machine
  int ranks_per_host = 1;        // with a net; consecutive ranks share a host
};

/// The settings for `ranks` ranks on this machine. Errors: resource.
Setup make_setup(int ranks, const PrivateFolder& folder);
/// The process, changed to start on its rank's host if there is a net.
launch::RankCommand on_its_host(const Setup&, launch::RankCommand process);

/// The transport that peal's ranks really use: "shm", "tcp", "shm+tcp".
std::string transport_words(TransportChoice choice, const HostOptions& hosts);

/// peal. `variants`: "registered", "foreign".
Fleet peal_fleet(const Setup&,
                 const std::string& backend,
                 TransportChoice transport,
                 std::vector<std::string> variants);
/// The floor on one host.
Fleet probe_fleet(const Setup&);
/// The floor between hosts: one worker on each host. Workers are not bound to cores, because a
/// worker may have a thread for each direction.
Fleet stream_fleet(const Setup&);
/// gloo from the torch of $PEAL_BENCH_PYTHON, or of python3. Its ranks are not bound to cores,
/// because each rank has several threads. On one core these threads waited for each other by the
/// scheduler's ticks (64 KiB, two ranks: 0.3 to 3.5 ms bound, 0.5 ms not bound).
FleetOrAbsent gloo_fleet(const Setup&);

/// A shared file with a line for each rank.
Fd make_flags(int ranks);
/// "spin", "yield"
std::string name_of(Waiting waiting);

}  // namespace peal::bench
