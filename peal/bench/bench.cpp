#include "peal/bench/bench.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/base/size_text.h"
#include "peal/bench/algorithm.h"
#include "peal/bench/fleet.h"
#include "peal/bench/folder.h"
#include "peal/bench/free_memory.h"
#include "peal/bench/memory_need.h"
#include "peal/bench/mpi_fleet.h"
#include "peal/bench/session.h"
#include "peal/bench/stream_subject.h"
#include "peal/bench/tune.h"
#include "peal/config/environment.h"
#include "peal/net/socket.h"
#include "peal/plan/table.h"
#include "peal/system/private_folder.h"

namespace peal::bench {
namespace {

/// With --tune: an algorithm that takes this many times as long as another cannot win. The factor
/// is large, because another program on the machine can slow an operation several times for a
/// second.
constexpr double kFarBehind = 3;

/// The fleets to start for one number of ranks, and the backends that cannot be measured.
struct FleetPlan {
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

FleetPlan plan_fleets(const BenchOptions& options, const Setup& setup) {
  FleetPlan all;
  for (const std::string& algorithm : options.algorithms) {
    Fleet fleet = peal_fleet(setup, tuned_backend(algorithm), options.transport, options.memory);
    for (launch::RankCommand& process : fleet.processes) {
      process.environment["PEAL_ALGORITHM"] = algorithm;
    }
    all.add(std::move(fleet));
  }
  if (!options.algorithms.empty()) return all;
  all.add(peal_fleet(setup, "peal", options.transport, options.memory));
  all.add(setup.net == nullptr ? probe_fleet(setup) : stream_fleet(setup));
  if (wants(options, "gloo")) all.add(gloo_fleet(setup));
  const std::vector<Mpi> mpis = options.peers.empty() ? std::vector<Mpi>{} : find_mpis();
  for (const Mpi& mpi : mpis) {
    if (wants(options, "mpi") || wants(options, mpi.name)) all.add(mpi_fleet(setup, mpi));
  }
  for (const std::string name : {"openmpi", "mpich"}) {
    const bool is_there = std::ranges::count(mpis, name, &Mpi::name) > 0;
    if (!is_there && wants(options, name)) {
      all.absent.push_back({name, "its mpicc or mpirun is not in PATH"});
    }
  }
  if (mpis.empty() && wants(options, "mpi")) {
    all.absent.push_back({"mpi", "mpicc is not in PATH"});
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

/// The algorithms of peal's fleets for each case.
class Planning final {
 public:
  explicit Planning(const BenchOptions& options)
      : options_(options), config_(config_from(process_environment())) {  // the ranks inherit it
    settings_.emplace("peal", config_);
    for (const std::string& algorithm : options.algorithms) {
      Config forced = config_;
      forced.algorithm = algorithm;
      settings_.emplace(tuned_backend(algorithm), forced);
    }
  }

  /// "" for other backends than peal.
  std::string algorithm(const std::string& backend, const Case& c) const {
    const auto settings = settings_.find(backend);
    return settings == settings_.end() ? "" : algorithm_of(settings->second, c, surroundings(c));
  }

  /// Whether `backend` is the fleet of an algorithm of peal that applies to the case.
  bool can_do(const std::string& backend, const Case& c) const {
    return std::ranges::any_of(options_.algorithms, [&](const std::string& algorithm) {
      return backend == tuned_backend(algorithm) &&
             algorithm_applies(algorithm, c, surroundings(c));
    });
  }

 private:
  Surroundings surroundings(const Case& c) const {
    int sharing = options_.hosts.hosts == 0 ? c.ranks : options_.hosts.ranks_per_host;
    if (options_.transport == TransportChoice::kTcp) sharing = 1;
    return {sharing, config_.stage};
  }

  const BenchOptions& options_;
  Config config_;
  std::map<std::string, plan::AlgorithmSettings> settings_;  // by backend
};

/// Estimates the time for the remaining cases: the expected time, corrected by the pace so far.
class Outlook final {
 public:
  Outlook(const Session& session, const std::vector<Case>& cases, const MeasureOptions& options) {
    for (const Case& c : cases)
      ends_.push_back(ends_.back() + expected_seconds(session, c, options));
  }

  double seconds_left(std::size_t done) const {
    const double spent = std::chrono::duration<double>(Clock::now() - begin_).count();
    const double pace = ends_[done] > 0 ? spent / ends_[done] : 1;
    return (ends_.back() - ends_[done]) * pace;
  }

 private:
  TimePoint begin_ = Clock::now();
  std::vector<double> ends_ = {0};  // expected end of the first k cases, in seconds
};

/// The backends that hold buffers for the case at the same time: all that take part, because they
/// take turns. Also counts `peers` that later turn out to be missing.
std::vector<Holder> holders_of(const BenchOptions& options,
                               const std::vector<std::string>& peers,
                               const Planning& planning,
                               const Case& c) {
  std::vector<Holder> holders;
  const Bytes buffers = buffers_of(c);
  const auto add_peal = [&](const std::string& backend) {
    for (const std::string& memory : options.memory) {
      holders.push_back({fmt::format("{} {}", backend, memory), buffers});
    }
  };
  for (const std::string& algorithm : options.algorithms) {
    const std::string backend = tuned_backend(algorithm);
    if (planning.can_do(backend, c)) add_peal(backend);
  }
  if (!options.algorithms.empty()) return holders;
  add_peal("peal");
  const int hosts = options.hosts.hosts;
  if (hosts == 0) holders.push_back({"probe", buffers});  // both kinds of stores share them
  if (hosts > 0) {  // the bytes that each host sends and receives; both variants share them
    holders.push_back({"stream", bytes_between_hosts(c, hosts) * (2 * hosts)});
  }
  for (const std::string& peer : peers) holders.push_back({peer, buffers});
  return holders;
}

void check_memory(const BenchOptions& options) {
  const auto available = free_memory();
  if (!available) return;
  const std::vector<std::string> peers = resolve_peers(options.peers);
  const Planning planning(options);
  for (const int ranks : numbers_of_ranks(options)) {
    for (const Case& c : cases_of(options, ranks)) {
      check_memory(c, holders_of(options, peers, planning, c), *available);
    }
  }
}

Conditions conditions_of(const BenchOptions& options) {
  const Config config = config_from(process_environment());  // the ranks inherit it
  const bool is_as_ever = config.stage == Config().stage;
  const std::string& congestion = options.hosts.congestion;
  return {.rate = options.hosts.rate,
          .congestion = congestion.empty() ? config.congestion : congestion,
          .algorithm = config.algorithm,
          .tune = plan::to_text(plan::parse_table(config.tune), ";"),
          .stage = is_as_ever ? "" : size_text(config.stage, SizeStyle::kLong),
          .rewriting = options.measure.rewriting};
}

/// Removes folders and hosts of runs that were killed.
void remove_leftovers() {
  remove_folders_of_ended_processes(kFolderPrefix, kSharedMemory);
  if (::geteuid() == 0) remove_hosts_of_ended_processes();
}

void run_ranks(const BenchOptions& options,
               int ranks,
               const HostNet* net,
               const BenchSink& sink,
               launch::SignalReader& signals) {
  const PrivateFolder folder(kFolderPrefix);
  Setup setup = make_setup(ranks, folder);
  setup.net = net;
  setup.ranks_per_host = options.hosts.ranks_per_host;
  FleetPlan all = plan_fleets(options, setup);
  Fd socket = net::listen_on(net::Address::parse("unix:" + setup.socket));
  Session session(std::move(all.fleets), std::move(socket), signals);
  sink.begin(ranks, describe(session, all.absent));
  for (std::size_t i = 0; i < session.size(); ++i) {
    if (!session.loss(i).empty()) {
      sink.incident({Incident::Kind::kLost, session.fleet(i).backend, session.loss(i)});
    }
  }
  const Planning planning(options);
  MeasureOptions measure_options = options.measure;
  measure_options.conditions = conditions_of(options);
  measure_options.incident = sink.incident;
  measure_options.algorithm = [&planning](const std::string& backend, const Case& c) {
    return planning.algorithm(backend, c);
  };
  if (!options.algorithms.empty()) {
    measure_options.far_behind = kFarBehind;
    measure_options.takes_part = [&planning](const std::string& backend, const Case& c) {
      return planning.can_do(backend, c);
    };
  }
  const std::vector<Case> cases = cases_of(options, ranks);
  const Outlook outlook(session, cases, measure_options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    sink.progress({i, cases.size(), outlook.seconds_left(i), cases[i]});
    sink.results(measure(session, cases[i], measure_options));
  }
}

/// Runs on this machine, or between hosts that are removed at the end.
void run_all(const BenchOptions& options, const BenchSink& sink, launch::SignalReader& signals) {
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
  const Conditions conditions = conditions_of(options);
  std::vector<Result> results;
  for (const int ranks : numbers_of_ranks(options)) {
    for (const Case& c : cases_of(options, ranks)) {
      for (const std::string& variant : options.memory) {
        results.push_back({.the_case = c,
                           .backend = "peal",
                           .transport = transport_words(options.transport, options.hosts),
                           .variant = variant,
                           .hosts = std::max(options.hosts.hosts, 1),
                           .conditions = conditions,
                           .time = {}});
      }
    }
  }
  return results;
}

void run(const BenchOptions& options, const BenchSink& sink) {
  check_memory(options);
  remove_leftovers();
  launch::SignalReader signals;
  try {
    run_all(options, sink, signals);
  } catch (const SignalReceived&) {
    while (signals.try_next()) {  // drops further signals: the run ends anyway
    }
    throw;
  }
}

}  // namespace peal::bench
