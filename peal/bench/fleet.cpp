#include "peal/bench/fleet.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/bench/subprocess.h"
#include "peal/bench/worker.h"
#include "peal/bench/worker_file.h"
#include "peal/launch/cores.h"
#include "peal/launch/inherited.h"
#include "peal/system/shared_file.h"

namespace peal::bench {
namespace {

constexpr Timeout kQuestion = std::chrono::seconds(20);

std::vector<launch::CoreShare> shares_of(const Setup& setup) {
  std::vector<launch::CoreShare> shares;
  for (const auto& cpus : setup.cpus) shares.push_back({.cpus = cpus, .threads = 1});
  return shares;
}

/// Sets the variables that a launcher for several hosts would set.
void set_meeting_place(const Setup& setup, launch::RankCommand& process) {
  launch::Variables& variables = process.environment;
  variables["LOCAL_RANK"] = fmt::format("{}", process.rank % setup.ranks_per_host);
  variables["LOCAL_WORLD_SIZE"] = fmt::format("{}", setup.ranks_per_host);
  variables["MASTER_ADDR"] = setup.net->hosts().front().address;
  variables["PEAL_INTERFACE"] = setup.net->subnet();
  variables["GLOO_SOCKET_IFNAME"] = kHostInterface;
}

/// A process of `command` for each rank; the last arguments are its rank and the number of ranks.
std::vector<launch::RankCommand> processes_of(const Setup& setup,
                                              const launch::JobContext& job,
                                              std::vector<std::string> command) {
  launch::LaunchOptions options;
  options.command = std::move(command);
  options.ranks = setup.ranks;
  const std::string program = options.command.front();
  auto processes = launch::plan_ranks(options, job, program, shares_of(setup), setup.inherited);
  for (launch::RankCommand& process : processes) {
    process.environment["OMP_NUM_THREADS"] = "1";
    process.arguments.push_back(fmt::format("{}", process.rank));
    process.arguments.push_back(fmt::format("{}", setup.ranks));
    if (setup.net != nullptr) set_meeting_place(setup, process);
    process = on_its_host(setup, std::move(process));
  }
  return processes;
}

std::vector<std::string> own_worker(const Setup& setup,
                                    const std::string& kind,
                                    const std::string& backend,
                                    const Fd& flags) {
  return {setup.program,
          kWorkerCommand,
          kind,
          backend,
          setup.socket,
          path_of_shared_file(flags),
          name_of(setup.waiting)};
}

}  // namespace

std::string name_of(Waiting waiting) { return waiting == Waiting::kSpin ? "spin" : "yield"; }

Fd make_flags(int ranks) {
  return make_shared_file("peal-bench-flags", Bytes(Flags::kLine) * ranks);
}

launch::RankCommand on_its_host(const Setup& setup, launch::RankCommand process) {
  if (setup.net == nullptr) return process;
  const auto host = static_cast<std::size_t>(process.rank / setup.ranks_per_host);
  const std::string& name = setup.net->hosts()[host].name;
  process.arguments.insert(process.arguments.begin(), {"ip", "netns", "exec", name});
  process.program = find_program("ip").value();
  return process;
}

Setup make_setup(int ranks, const PrivateFolder& folder) {
  Setup setup{.ranks = ranks,
              .cpus = {},
              .socket = folder.path() / "coordinator",
              .program = std::filesystem::read_symlink("/proc/self/exe"),
              .inherited = launch::without_those_of_a_rank(launch::process_variables()),
              .folder = &folder};
  setup.cpus.resize(static_cast<std::size_t>(ranks));
  const std::vector<launch::Core> cores = launch::usable_cores();
  if (setup.cpus.size() > cores.size()) {
    setup.waiting = Waiting::kYield;
    return setup;
  }
  for (std::size_t rank = 0; rank < setup.cpus.size(); ++rank) {
    setup.cpus[rank] = cores[rank].cpus;
  }
  return setup;
}

std::string transport_words(TransportChoice choice, const HostOptions& hosts) {
  if (choice == TransportChoice::kTcp) return "tcp";
  if (hosts.hosts == 0) return "shm";
  return hosts.ranks_per_host == 1 ? "tcp" : "shm+tcp";
}

Fleet peal_fleet(const Setup& setup,
                 const std::string& backend,
                 TransportChoice transport,
                 std::vector<std::string> variants) {
  Fleet fleet{.backend = backend,
              .transport = transport_words(
                  transport, setup.net == nullptr ? HostOptions{} : setup.net->options()),
              .variants = std::move(variants),
              .ranks = setup.ranks,
              .job = launch::make_job_context()};
  fleet.memory.push_back(make_flags(setup.ranks));
  fleet.processes =
      processes_of(setup, fleet.job.job, own_worker(setup, "peal", fleet.backend, fleet.memory[0]));
  for (launch::RankCommand& process : fleet.processes) {
    process.environment["PEAL_TRANSPORT"] = name_of(transport);
    process.arguments.push_back(fleet.transport);
  }
  return fleet;
}

Fleet probe_fleet(const Setup& setup) {
  Fleet fleet{.backend = "probe",
              .transport = "shm",
              .variants = {"plain", "streaming"},
              .ranks = setup.ranks};
  fleet.memory.push_back(make_flags(setup.ranks));
  fleet.memory.push_back(make_shared_file("peal-bench-probe", 1_MiB));
  fleet.processes =
      processes_of(setup, {}, own_worker(setup, "probe", fleet.backend, fleet.memory[0]));
  for (launch::RankCommand& process : fleet.processes) {
    process.arguments.push_back(path_of_shared_file(fleet.memory[1]));
  }
  return fleet;
}

Fleet stream_fleet(const Setup& setup) {
  Setup hosts = setup;
  hosts.ranks = static_cast<int>(setup.net->hosts().size());
  hosts.ranks_per_host = 1;
  hosts.cpus.assign(setup.net->hosts().size(), {});
  const bool have_cores = setup.net->hosts().size() <= launch::usable_cores().size();
  hosts.waiting = have_cores ? Waiting::kSpin : Waiting::kYield;
  Fleet fleet{.backend = "stream",
              .transport = "tcp",
              .variants = {"two-way", "two-threads", "round-trip"},
              .ranks = hosts.ranks};
  fleet.memory.push_back(make_flags(hosts.ranks));
  std::string addresses;
  for (const Host& host : setup.net->hosts()) {
    addresses += (addresses.empty() ? "" : ",") + host.address;
  }
  fleet.processes =
      processes_of(hosts, {}, own_worker(hosts, "stream", fleet.backend, fleet.memory[0]));
  for (launch::RankCommand& process : fleet.processes) process.arguments.push_back(addresses);
  return fleet;
}

FleetOrAbsent gloo_fleet(const Setup& setup) {
  const char* const named = std::getenv("PEAL_BENCH_PYTHON");
  const std::string name = named == nullptr ? "python3" : named;
  const auto python = find_program(name);
  if (!python) return Absent{"gloo", fmt::format("there is no {}", name)};
  const Finished has_torch = run_program(
      {*python, "-c", "import importlib.util as i, sys; sys.exit(not i.find_spec('torch'))"},
      Deadline::after(kQuestion));
  if (has_torch.status != 0) {
    return Absent{"gloo",
                  fmt::format("{} has no torch; set PEAL_BENCH_PYTHON to another Python", *python)};
  }
  Fleet fleet{.backend = "gloo", .transport = "tcp", .ranks = setup.ranks};
  fleet.memory.push_back(make_flags(setup.ranks));
  fleet.processes = processes_of(setup,
                                 {},
                                 {*python,
                                  "-B",
                                  worker_file("gloo_worker.py"),
                                  setup.socket,
                                  path_of_shared_file(fleet.memory[0]),
                                  name_of(setup.waiting)});
  for (launch::RankCommand& process : fleet.processes) {
    process.arguments.push_back(setup.folder->path() / "gloo_meeting");
    process.cpus.clear();
  }
  return fleet;
}

}  // namespace peal::bench
