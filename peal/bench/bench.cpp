#include "peal/bench/bench.h"

#include <sys/resource.h>

#include <algorithm>

#include <fmt/format.h>

#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/bench/fleet.h"
#include "peal/bench/folder.h"
#include "peal/bench/mpi_fleet.h"
#include "peal/bench/session.h"
#include "peal/bench/tune.h"
#include "peal/net/socket.h"

namespace peal::bench {
namespace {

/// What is to be started for one number of ranks, and what is not.
struct Muster {
  std::vector<Fleet> fleets;
  std::vector<Absent> absent;

  void add(FleetOrAbsent made) {
    if (auto* const fleet = std::get_if<Fleet>(&made)) {
      fleets.push_back(std::move(*fleet));
    } else {
      absent.push_back(std::get<Absent>(std::move(made)));
    }
  }
};

bool wants(const BenchOptions& options, const std::string& peer) {
  return std::ranges::count(options.peers, peer) > 0;
}

Muster muster(const BenchOptions& options, const Ground& ground) {
  Muster all;
  for (const std::string& algorithm : options.algorithms) {
    Fleet fleet = peal_fleet(ground, tuned_backend(algorithm), options.transport, options.memory);
    for (launch::RankProcess& process : fleet.processes) {
      process.environment["PEAL_ALGORITHM"] = algorithm;
    }
    all.add(std::move(fleet));
  }
  if (!options.algorithms.empty()) return all;
  all.add(peal_fleet(ground, "peal", options.transport, options.memory));
  all.add(ground.net == nullptr ? probe_fleet(ground) : stream_fleet(ground));
  if (wants(options, "gloo")) all.add(gloo_fleet(ground));
  const std::vector<Mpi> mpis = options.peers.empty() ? std::vector<Mpi>{} : find_mpis();
  for (const Mpi& mpi : mpis) {
    if (wants(options, "mpi") || wants(options, mpi.name)) all.add(mpi_fleet(ground, mpi));
  }
  for (const std::string name : {"openmpi", "mpich"}) {
    const bool is_there = std::ranges::count(mpis, name, &Mpi::name) > 0;
    if (!is_there && wants(options, name)) {
      all.absent.push_back({name, "there is no mpicc and mpirun of it in PATH"});
    }
  }
  if (mpis.empty() && wants(options, "mpi")) {
    all.absent.push_back({"mpi", "there is no mpicc in PATH"});
  }
  return all;
}

std::vector<int> numbers_of_ranks(const BenchOptions& options) {
  if (options.hosts.hosts == 0) return options.ranks;
  return {options.hosts.hosts * options.hosts.ranks_per_host};
}

std::vector<std::string> describe(const Session& session, const std::vector<Absent>& absent) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < session.size(); ++i) {
    if (!session.loss(i).empty()) continue;
    lines.push_back(fmt::format("{}: {}", session.fleet(i).backend, session.note(i)));
  }
  for (const Absent& one : absent) {
    lines.push_back(fmt::format("{}: left out: {}", one.backend, one.reason));
  }
  return lines;
}

/// Each process that is started takes four here for a while, so hundreds of ranks take more than
/// the usual soft limit of 1024.
void allow_many_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Whether the fleet of one of peal's algorithms does the case by that algorithm, where its ranks
/// have such a stage.
bool can_do(const BenchOptions& options, const std::string& backend, const Case& c, Bytes stage) {
  int sharing = options.hosts.hosts == 0 ? c.ranks : options.hosts.ranks_per_host;
  if (options.transport == TransportChoice::kTcp) sharing = 1;
  return std::ranges::any_of(options.algorithms, [&](const std::string& algorithm) {
    return backend == tuned_backend(algorithm) && algorithm_applies(algorithm, c, sharing, stage);
  });
}

void run_ranks(const BenchOptions& options,
               int ranks,
               const HostNet* net,
               const BenchSink& sink,
               launch::SignalReader& signals) {
  const Folder folder;
  Ground ground = lay_ground(ranks, folder);
  ground.net = net;
  ground.ranks_per_host = options.hosts.ranks_per_host;
  Muster all = muster(options, ground);
  Fd socket = net::listen_on(net::Address::parse("unix:" + ground.socket));
  Session session(std::move(all.fleets), std::move(socket), signals);
  sink.begin(ranks, describe(session, all.absent));
  for (std::size_t i = 0; i < session.size(); ++i) {
    if (!session.loss(i).empty()) {
      sink.incident({Incident::Kind::kLost, session.fleet(i).backend, session.loss(i)});
    }
  }
  MeasureOptions measure_options = options.measure;
  if (!options.algorithms.empty()) {
    const Bytes stage = config_from(process_environment()).stage;  // the ranks inherit it
    measure_options.takes_part = [&options, stage](const std::string& backend, const Case& c) {
      return can_do(options, backend, c, stage);
    };
  }
  for (const Case& c : cases_of(options, ranks)) {
    const Measured measured = measure(session, c, measure_options);
    for (const Incident& incident : measured.incidents) sink.incident(incident);
    sink.results(measured.results);
  }
}

}  // namespace

const std::vector<std::string>& known_peers() {
  static const std::vector<std::string> kNames = {"gloo", "mpi", "openmpi", "mpich"};
  return kNames;
}

std::vector<std::string> resolve_peers(const std::vector<std::string>& peers) {
  std::vector<std::string> resolved;
  const auto add = [&](const std::string& name) {
    if (std::ranges::count(resolved, name) == 0) resolved.push_back(name);
  };
  for (const std::string& peer : peers) {
    if (peer != "mpi") add(peer);
    if (peer == "mpi") {
      for (const Mpi& mpi : find_mpis()) add(mpi.name);
    }
  }
  return resolved;
}

std::vector<Case> cases_of(const BenchOptions& options, int ranks) {
  std::vector<Case> cases;
  for (const Op op : options.ops) {
    for (const DType dtype : options.dtypes) {
      for (const Bytes size : options.sizes) {
        Case c = make_case(op, dtype, ranks, size, options.place);
        if (op == Op::kBarrier) c.dtype = DType::kU8;
        if (std::ranges::count(cases, c) == 0) cases.push_back(c);
      }
    }
  }
  return cases;
}

std::vector<Result> planned_results(const BenchOptions& options) {
  std::vector<Result> results;
  for (const int ranks : numbers_of_ranks(options)) {
    for (const Case& c : cases_of(options, ranks)) {
      for (const std::string& variant : options.memory) {
        results.push_back({.the_case = c,
                           .backend = "peal",
                           .transport = transport_words(options.transport, options.hosts),
                           .variant = variant,
                           .hosts = std::max(options.hosts.hosts, 1),
                           .time = {}});
      }
    }
  }
  return results;
}

void run(const BenchOptions& options, const BenchSink& sink) {
  allow_many_descriptors();
  launch::SignalReader signals;
  if (options.hosts.hosts == 0) {
    for (const int ranks : numbers_of_ranks(options)) {
      run_ranks(options, ranks, nullptr, sink, signals);
    }
    return;
  }
  const HostNet net(options.hosts);
  BenchOptions between = options;
  between.measure.floors = {"stream"};
  between.measure.hosts = options.hosts.hosts;
  between.measure.traffic = [&net] { return net.traffic(); };
  run_ranks(between, numbers_of_ranks(options).front(), &net, sink, signals);
}

}  // namespace peal::bench
