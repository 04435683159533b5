#include "peal/bench/fleet.h"

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/bench/embedded.h"
#include "peal/bench/subprocess.h"
#include "peal/bench/worker.h"
#include "peal/launch/cores.h"

namespace peal::bench {
namespace {

constexpr Timeout kQuestion = std::chrono::seconds(20);

std::vector<launch::CoreShare> shares_of(const Ground& ground) {
  std::vector<launch::CoreShare> shares;
  for (const auto& cpus : ground.cpus) shares.push_back({.cpus = cpus, .threads = 1});
  return shares;
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

Ground lay_ground(int ranks, const Folder& folder) {
  Ground ground{.ranks = ranks,
                .cpus = {},
                .socket = folder.path() / "coordinator",
                .program = std::filesystem::read_symlink("/proc/self/exe"),
                .inherited = launch::process_variables(),
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

Fleet peal_fleet(const Ground& ground,
                 const launch::Job& job,
                 TransportChoice transport,
                 std::vector<std::string> variants) {
  Fleet fleet{.backend = "peal",
              .transport = transport == TransportChoice::kTcp ? "tcp" : "shm",
              .variants = std::move(variants),
              .ranks = ground.ranks};
  fleet.memory.push_back(make_flags(ground.ranks));
  fleet.processes =
      processes_of(ground, job, own_worker(ground, "peal", fleet.backend, *fleet.memory[0]));
  for (launch::RankProcess& process : fleet.processes) {
    process.environment["PEAL_TRANSPORT"] = name_of(transport);
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
  }
  return fleet;
}

}  // namespace peal::bench
