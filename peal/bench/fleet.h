// A fleet is the workers of one backend: what to start for it. The functions here are called before
// anything is started; `Session` (session.h) starts all fleets and talks to them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "peal/base/config.h"
#include "peal/base/private_folder.h"
#include "peal/bench/flags.h"
#include "peal/bench/host_net.h"
#include "peal/bench/shared_file.h"
#include "peal/launch/job.h"
#include "peal/launch/rank_process.h"

namespace peal::bench {

struct Fleet {
  std::string backend;    // "peal", "probe", "gloo", "openmpi", ...: its name among the fleets
  std::string transport;  // for the report: "shm", "tcp", "default"
  std::vector<std::string> variants = {"default"};  // the ways in which it does each case
  int ranks = 0;
  std::vector<launch::RankProcess> processes = {};       // one for each rank, or one launcher
  std::vector<std::unique_ptr<SharedFile>> memory = {};  // kept for the workers: flags, and others
  launch::NewJob job = {};                               // of peal's ranks; keeps their port
  std::unique_ptr<PrivateFolder> segments = {};          // of shared memory that has names
};

/// What cannot be measured, and why.
struct Absent {
  std::string backend;
  std::string reason;
};
using FleetOrAbsent = std::variant<Fleet, Absent>;

/// What all fleets of a session have in common.
struct Ground {
  int ranks = 2;
  /// The CPUs of each rank: one core each, in the machine's order, the same for every backend but
  /// gloo and the stream; empty where there are more ranks than cores.
  std::vector<std::vector<int>> cpus;
  Waiting waiting = Waiting::kSpin;
  std::string socket = {};   // of the coordinator
  std::string program = {};  // this one
  launch::Variables inherited = {};
  const PrivateFolder* folder = nullptr;
  const HostNet* net = nullptr;  // nothing: one host, this machine
  int ranks_per_host = 1;        // where there is a net; neighbours share a host
};

/// Where `ranks` ranks run on this machine. Errors: resource.
Ground lay_ground(int ranks, const PrivateFolder& folder);
/// `process` started on its rank's host, where there are several.
launch::RankProcess on_its_host(const Ground&, launch::RankProcess process);

/// How peal's ranks really reach each other: "shm", "tcp", "shm+tcp".
std::string transport_words(TransportChoice choice, const HostOptions& hosts);

/// peal itself. `variants`: "registered", "foreign".
Fleet peal_fleet(const Ground&,
                 const std::string& backend,
                 TransportChoice transport,
                 std::vector<std::string> variants);
/// The floor on one host.
Fleet probe_fleet(const Ground&);
/// The floor between hosts; one worker for each, not bound, since it may have a thread for each
/// way.
Fleet stream_fleet(const Ground&);
/// gloo of $PEAL_BENCH_PYTHON's torch, or python3's. Its ranks are not bound: each has several
/// threads, and on one core they were seen to wait for each other by the scheduler's ticks (64 KiB,
/// two ranks: 0.3 to 3.5 ms bound, 0.5 ms not bound).
FleetOrAbsent gloo_fleet(const Ground&);

/// A shared page with a line for each rank.
std::unique_ptr<SharedFile> make_flags(int ranks);
/// "spin", "yield"
std::string name_of(Waiting waiting);

}  // namespace peal::bench
