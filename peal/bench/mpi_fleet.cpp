#include "peal/bench/mpi_fleet.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/private_folder.h"
#include "peal/bench/embedded.h"
#include "peal/bench/folder.h"
#include "peal/bench/subprocess.h"

namespace peal::bench {
namespace {

constexpr Timeout kProbeLimit = std::chrono::seconds(20);
constexpr Timeout kBuilding = std::chrono::seconds(120);

/// "openmpi", "mpich" or "", by what the launcher says of itself.
std::string kind_of(const std::string& launcher) {
  const std::string text =
      run_program({launcher, "--version"}, Deadline::after(kProbeLimit)).output;
  if (text.find("Open MPI") != std::string::npos) return "openmpi";
  if (text.find("HYDRA") != std::string::npos) return "mpich";
  return "";
}

std::filesystem::path cache_folder(const PrivateFolder& instead) {
  if (const char* const cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != 0) {
    return std::filesystem::path(cache) / "peal";
  }
  if (const char* const home = std::getenv("HOME"); home != nullptr && *home != 0) {
    return std::filesystem::path(home) / ".cache" / "peal";
  }
  return instead.path();
}

/// Differs for every source, compiler and set of its flags.
std::size_t fingerprint(const Mpi& mpi) {
  std::error_code unknown;
  const auto changed = std::filesystem::last_write_time(mpi.compiler, unknown).time_since_epoch();
  const std::string flags =
      run_program({mpi.compiler, "-show"}, Deadline::after(kProbeLimit)).output;
  return std::hash<std::string>()(
      fmt::format("{}\n{}\n{}\n{}", kMpiWorker, mpi.compiler, changed.count(), flags));
}

/// What lies in the cache is executed, so nobody else may be able to put anything there.
bool is_own_folder(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         ::access(path.c_str(), W_OK | X_OK) == 0;
}

/// Made by a former run of this user, and changed by nobody else.
bool is_own_program(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         (status.st_mode & S_IXUSR) != 0;
}

struct Built {
  std::string program;  // empty: it could not be built
  std::string problem;
};

Built build_worker(const Mpi& mpi, const PrivateFolder& folder) {
  std::error_code error;
  std::filesystem::path cache = cache_folder(folder);
  std::filesystem::create_directories(cache.parent_path(), error);
  ::mkdir(cache.c_str(), 0700);
  if (error || !is_own_folder(cache)) cache = folder.path();
  const std::string program = cache / fmt::format("bench-{}-{:016x}", mpi.name, fingerprint(mpi));
  if (is_own_program(program)) return {program, ""};
  const std::string source = folder.write(mpi.name + "_worker.c", kMpiWorker);
  const std::string made = fmt::format("{}.{}", program, ::getpid());
  const Finished compiled =
      run_program({mpi.compiler, "-O3", "-o", made, source}, Deadline::after(kBuilding));
  ::chmod(made.c_str(), 0700);  // whatever the mask
  if (compiled.status == 0) std::filesystem::rename(made, program, error);
  if (compiled.status == 0 && !error) return {program, ""};
  std::filesystem::remove(made, error);
  return {"", compiled.output.substr(0, compiled.output.find('\n'))};
}

/// Starts OpenMPI's daemon on the host of that address, as ssh would: the words that follow it are
/// a command for a shell. Each host needs a name of its own.
std::string agent_script(const HostNet& net) {
  std::string script = "#!/bin/sh\nhost=$1\nshift\ncase $host in\n";
  for (const Host& host : net.hosts()) {
    script += fmt::format("  {}) name={} ;;\n", host.address, host.name);
  }
  return script +
         "esac\n"
         "exec ip netns exec $name unshare -u "
         "sh -c 'hostname \"$0\"; exec sh -c \"$1\"' $name \"$*\"\n";
}

/// OpenMPI over several hosts. Ranks are not bound: each host would bind to the first core.
std::vector<std::string> start_between_hosts(const Mpi& mpi, const Ground& ground) {
  const HostNet& net = *ground.net;
  const std::string agent = ground.folder->write("agent", agent_script(net));
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  std::string hosts;
  for (const Host& host : net.hosts()) {
    hosts += fmt::format("{}{}:{}", hosts.empty() ? "" : ",", host.address, ground.ranks_per_host);
  }
  const std::string first = net.hosts().front().name;
  return {"ip",
          "netns",
          "exec",
          first,
          "unshare",
          "-u",
          "sh",
          "-c",
          "hostname \"$0\"; exec \"$@\"",
          first,
          mpi.launcher,
          "--allow-run-as-root",
          "--mca",
          "plm",
          "rsh",
          "--mca",
          "plm_rsh_agent",
          agent,
          "--mca",
          "oob_tcp_if_include",
          net.subnet(),
          "--mca",
          "btl_tcp_if_include",
          net.subnet(),
          "--bind-to",
          "none",
          "--oversubscribe",
          "--host",
          hosts,
          "-n",
          fmt::format("{}", ground.ranks)};
}

std::vector<std::string> start_of(const Mpi& mpi, const Ground& ground) {
  const bool has_cores = ground.waiting == Waiting::kSpin;
  const std::string ranks = fmt::format("{}", ground.ranks);
  if (ground.net != nullptr) return start_between_hosts(mpi, ground);
  if (mpi.name == "mpich") {
    return {mpi.launcher, "-bind-to", has_cores ? "core" : "none", "-n", ranks};
  }
  // "isolated": on this machine, so without ssh, which need not be there.
  std::vector<std::string> words = {
      mpi.launcher, "--allow-run-as-root", "--mca", "plm", "isolated", "-n", ranks};
  const auto binding = has_cores ? std::vector<std::string>{"--map-by", "core", "--bind-to", "core"}
                                 : std::vector<std::string>{"--oversubscribe", "--bind-to", "none"};
  words.insert(words.end(), binding.begin(), binding.end());
  return words;
}

/// OpenMPI's ranks share files, which stay if they are killed: in this folder they are ours to
/// remove, in the same memory. The second name is that of version 5.
void give_segments(Fleet& fleet, launch::Variables& variables) {
  if (::access(kSharedMemory, W_OK | X_OK) != 0) return;
  fleet.segments = std::make_unique<PrivateFolder>(kFolderPrefix, kSharedMemory);
  variables.try_emplace("OMPI_MCA_btl_vader_backing_directory", fleet.segments->path());
  variables.try_emplace("OMPI_MCA_btl_sm_backing_directory", fleet.segments->path());
}

}  // namespace

std::vector<Mpi> find_mpis() {
  std::vector<Mpi> found;
  for (const std::string name : {"openmpi", "mpich"}) {
    const auto compiler = find_program("mpicc." + name);
    const auto launcher = find_program("mpirun." + name);
    if (compiler && launcher) found.push_back({name, *compiler, *launcher});
  }
  if (!found.empty()) return found;
  const auto compiler = find_program("mpicc");
  const auto launcher = find_program("mpirun");
  if (!compiler || !launcher) return {};
  const std::string kind = kind_of(*launcher);
  if (kind.empty()) return {};
  return {{kind, *compiler, *launcher}};
}

FleetOrAbsent mpi_fleet(const Ground& ground, const Mpi& mpi) {
  if (ground.net != nullptr && mpi.name != "openmpi") {
    return Absent{mpi.name, "it is not measured between hosts"};
  }
  const Built built = build_worker(mpi, *ground.folder);
  if (built.program.empty()) {
    return Absent{mpi.name,
                  fmt::format("{} could not build the worker: {}", mpi.compiler, built.problem)};
  }
  Fleet fleet{.backend = mpi.name, .transport = "default", .ranks = ground.ranks};
  fleet.memory.push_back(make_flags(ground.ranks));
  std::vector<std::string> words = start_of(mpi, ground);
  words.insert(
      words.end(),
      {built.program, mpi.name, ground.socket, fleet.memory[0]->path(), name_of(ground.waiting)});
  std::string program = find_program(words.front()).value();
  launch::Variables variables = ground.inherited;
  variables["TMPDIR"] = ground.folder->path();  // so that what it leaves there is removed
  if (mpi.name == "openmpi") give_segments(fleet, variables);
  fleet.processes.push_back({.rank = 0,
                             .program = std::move(program),
                             .arguments = std::move(words),
                             .environment = std::move(variables),
                             .cpus = {}});
  return fleet;
}

}  // namespace peal::bench
