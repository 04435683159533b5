#include "peal/bench/fleet.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/bench/embedded.h"
#include "peal/bench/subprocess.h"
#include "peal/bench/worker.h"
#include "peal/launch/cores.h"
#include "peal/launch/inherited.h"

namespace peal::bench {
namespace {

constexpr Timeout kQuestion = std::chrono::seconds(20);

std::vector<launch::CoreShare> shares_of(const Ground& ground) {
  std::vector<launch::CoreShare> shares;
  for (const auto& cpus : ground.cpus) shares.push_back({.cpus = cpus, .threads = 1});
  return shares;
}

/// What a launcher that starts processes on several hosts would say.
void set_meeting_place(const Ground& ground, launch::RankProcess& process) {
  launch::Variables& variables = process.environment;
  variables["LOCAL_RANK"] = fmt::format("{}", process.rank % ground.ranks_per_host);
  variables["LOCAL_WORLD_SIZE"] = fmt::format("{}", ground.ranks_per_host);
  variables["MASTER_ADDR"] = ground.net->hosts().front().address;
  variables["PEAL_INTERFACE"] = ground.net->subnet();
  variables["GLOO_SOCKET_IFNAME"] = kHostInterface;
}

/// One process of `command` for each rank, with its rank and their number as the last words.
std::vector<launch::RankProcess> processes_of(const Ground& ground,
                                              const launch::Job& job,
                                              std::vector<std::string> command) {
  launch::LaunchOptions options;
  options.command = std::move(command);
  options.ranks = ground.ranks;
  const std::string program = options.command.front();
  auto processes = launch::plan_ranks(options, job, program, shares_of(ground), ground.inherited);
  for (launch::RankProcess& process : processes) {
    process.environment["OMP_NUM_THREADS"] = "1";
    process.arguments.push_back(fmt::format("{}", process.rank));
    process.arguments.push_back(fmt::format("{}", ground.ranks));
    if (ground.net != nullptr) set_meeting_place(ground, process);
    process = on_its_host(ground, std::move(process));
  }
  return processes;
}

std::vector<std::string> own_worker(const Ground& ground,
                                    const std::string& kind,
                                    const std::string& backend,
                                    const SharedFile& flags) {
  return {ground.program,
          kWorkerCommand,
          kind,
          backend,
          ground.socket,
          flags.path(),
          name_of(ground.waiting)};
}

}  // namespace

std::string name_of(Waiting waiting) { return waiting == Waiting::kSpin ? "spin" : "yield"; }

std::unique_ptr<SharedFile> make_flags(int ranks) {
  return std::make_unique<SharedFile>("peal-bench-flags", Bytes(Flags::kLine) * ranks);
}

launch::RankProcess on_its_host(const Ground& ground, launch::RankProcess process) {
  if (ground.net == nullptr) return process;
  const auto host = static_cast<std::size_t>(process.rank / ground.ranks_per_host);
  const std::string& name = ground.net->hosts()[host].name;
  process.arguments.insert(process.arguments.begin(), {"ip", "netns", "exec", name});
  process.program = find_program("ip").value();
  return process;
}

Ground lay_ground(int ranks, const PrivateFolder& folder) {
  Ground ground{.ranks = ranks,
                .cpus = {},
                .socket = folder.path() / "coordinator",
                .program = std::filesystem::read_symlink("/proc/self/exe"),
                .inherited = launch::without_those_of_a_rank(launch::process_variables()),
                .folder = &folder};
  ground.cpus.resize(static_cast<std::size_t>(ranks));
  const std::vector<launch::Core> cores = launch::usable_cores();
  if (ground.cpus.size() > cores.size()) {
    ground.waiting = Waiting::kYield;
    return ground;
  }
  for (std::size_t rank = 0; rank < ground.cpus.size(); ++rank) {
    ground.cpus[rank] = cores[rank].cpus;
  }
  return ground;
}

std::string transport_words(TransportChoice choice, const HostOptions& hosts) {
  if (choice == TransportChoice::kTcp) return "tcp";
  if (hosts.hosts == 0) return "shm";
  return hosts.ranks_per_host == 1 ? "tcp" : "shm+tcp";
}

Fleet peal_fleet(const Ground& ground,
                 const std::string& backend,
                 TransportChoice transport,
                 std::vector<std::string> variants) {
  Fleet fleet{.backend = backend,
              .transport = transport_words(
                  transport, ground.net == nullptr ? HostOptions{} : ground.net->options()),
              .variants = std::move(variants),
              .ranks = ground.ranks,
              .job = launch::make_job()};
  fleet.memory.push_back(make_flags(ground.ranks));
  fleet.processes = processes_of(
      ground, fleet.job.job, own_worker(ground, "peal", fleet.backend, *fleet.memory[0]));
  for (launch::RankProcess& process : fleet.processes) {
    process.environment["PEAL_TRANSPORT"] = name_of(transport);
    process.arguments.push_back(fleet.transport);
  }
  return fleet;
}

Fleet probe_fleet(const Ground& ground) {
  Fleet fleet{.backend = "probe",
              .transport = "shm",
              .variants = {"plain", "streaming"},
              .ranks = ground.ranks};
  fleet.memory.push_back(make_flags(ground.ranks));
  fleet.memory.push_back(std::make_unique<SharedFile>("peal-bench-probe", 1_MiB));
  fleet.processes =
      processes_of(ground, {}, own_worker(ground, "probe", fleet.backend, *fleet.memory[0]));
  for (launch::RankProcess& process : fleet.processes) {
    process.arguments.push_back(fleet.memory[1]->path());
  }
  return fleet;
}

Fleet stream_fleet(const Ground& ground) {
  Ground hosts = ground;
  hosts.ranks = static_cast<int>(ground.net->hosts().size());
  hosts.ranks_per_host = 1;
  hosts.cpus.assign(ground.net->hosts().size(), {});
  const bool have_cores = ground.net->hosts().size() <= launch::usable_cores().size();
  hosts.waiting = have_cores ? Waiting::kSpin : Waiting::kYield;
  Fleet fleet{.backend = "stream",
              .transport = "tcp",
              .variants = {"two-way", "two-threads", "round-trip"},
              .ranks = hosts.ranks};
  fleet.memory.push_back(make_flags(hosts.ranks));
  std::string addresses;
  for (const Host& host : ground.net->hosts()) {
    addresses += (addresses.empty() ? "" : ",") + host.address;
  }
  fleet.processes =
      processes_of(hosts, {}, own_worker(hosts, "stream", fleet.backend, *fleet.memory[0]));
  for (launch::RankProcess& process : fleet.processes) process.arguments.push_back(addresses);
  return fleet;
}

FleetOrAbsent gloo_fleet(const Ground& ground) {
  const char* const named = std::getenv("PEAL_BENCH_PYTHON");
  const std::string name = named == nullptr ? "python3" : named;
  const auto python = find_program(name);
  if (!python) return Absent{"gloo", fmt::format("there is no {}", name)};
  const Finished has_torch = run_program(
      {*python, "-c", "import importlib.util as i, sys; sys.exit(not i.find_spec('torch'))"},
      Deadline::after(kQuestion));
  if (has_torch.status != 0) {
    return Absent{
        "gloo",
        fmt::format("{} has no torch; PEAL_BENCH_PYTHON=/path/of/python names another", *python)};
  }
  Fleet fleet{.backend = "gloo", .transport = "tcp", .ranks = ground.ranks};
  fleet.memory.push_back(make_flags(ground.ranks));
  const std::string script = ground.folder->write("gloo_worker.py", kGlooWorker);
  fleet.processes = processes_of(
      ground,
      {},
      {*python, "-B", script, ground.socket, fleet.memory[0]->path(), name_of(ground.waiting)});
  for (launch::RankProcess& process : fleet.processes) {
    process.arguments.push_back(ground.folder->path() / "gloo_meeting");
    process.cpus.clear();
  }
  return fleet;
}

}  // namespace peal::bench
