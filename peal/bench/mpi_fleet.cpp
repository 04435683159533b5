#include "peal/bench/mpi_fleet.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/bench/folder.h"
#include "peal/bench/subprocess.h"
#include "peal/bench/worker_file.h"
#include "peal/system/private_folder.h"
#include "peal/system/shared_file.h"
#include "peal/system/text_file.h"

namespace peal::bench {
namespace {

constexpr Timeout kProbeLimit = std::chrono::seconds(20);
constexpr Timeout kBuilding = std::chrono::seconds(120);

/// "openmpi", "mpich" or "", by the version text of the launcher.
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

/// Differs for different sources, compilers and compiler flags.
std::size_t fingerprint(const Mpi& mpi, const std::string& source) {
  std::error_code unknown;
  const auto changed = std::filesystem::last_write_time(mpi.compiler, unknown).time_since_epoch();
  const std::string flags =
      run_program({mpi.compiler, "-show"}, Deadline::after(kProbeLimit)).output;
  return std::hash<std::string>()(
      fmt::format("{}\n{}\n{}\n{}", source, mpi.compiler, changed.count(), flags));
}

/// Programs in the cache are executed, so only this user may be able to write there.
bool is_own_folder(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid() && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
         ::access(path.c_str(), W_OK | X_OK) == 0;
}

/// Whether an earlier run of this user made the program, and only this user can change it.
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
  const std::string source = worker_file("mpi_worker.c");
  const std::string program =
      cache / fmt::format("bench-{}-{:016x}", mpi.name, fingerprint(mpi, read_text_file(source)));
  if (is_own_program(program)) return {program, ""};
  const std::string made = fmt::format("{}.{}", program, ::getpid());
  const Finished compiled =
      run_program({mpi.compiler, "-O3", "-o", made, source}, Deadline::after(kBuilding));
  ::chmod(made.c_str(), 0700);  // for any umask
  if (compiled.status == 0) std::filesystem::rename(made, program, error);
  if (compiled.status == 0 && !error) return {program, ""};
  std::filesystem::remove(made, error);
  return {"", compiled.output.substr(0, compiled.output.find('\n'))};
}

/// A script that starts Open MPI's daemon on the host with the given address, as ssh would. The
/// words after the address are a shell command. Each host needs a different host name.
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

/// Open MPI over several hosts. Ranks are not bound to cores, because each host would bind to the
/// first core.
std::vector<std::string> start_between_hosts(const Mpi& mpi, const Setup& setup) {
  const HostNet& net = *setup.net;
  const std::string agent = setup.folder->write("agent", agent_script(net));
  std::filesystem::permissions(agent, std::filesystem::perms::owner_all);
  std::string hosts;
  for (const Host& host : net.hosts()) {
    hosts += fmt::format("{}{}:{}", hosts.empty() ? "" : ",", host.address, setup.ranks_per_host);
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
          fmt::format("{}", setup.ranks)};
}

std::vector<std::string> start_of(const Mpi& mpi, const Setup& setup) {
  const bool has_cores = setup.waiting == Waiting::kSpin;
  const std::string ranks = fmt::format("{}", setup.ranks);
  if (setup.net != nullptr) return start_between_hosts(mpi, setup);
  if (mpi.name == "mpich") {
    return {mpi.launcher, "-bind-to", has_cores ? "core" : "none", "-n", ranks};
  }
  // "isolated": on this machine only, without ssh, which may be missing.
  std::vector<std::string> words = {
      mpi.launcher, "--allow-run-as-root", "--mca", "plm", "isolated", "-n", ranks};
  const auto binding = has_cores ? std::vector<std::string>{"--map-by", "core", "--bind-to", "core"}
                                 : std::vector<std::string>{"--oversubscribe", "--bind-to", "none"};
  words.insert(words.end(), binding.begin(), binding.end());
  return words;
}

/// Open MPI's ranks share files, which remain if the ranks are killed. A folder in the same memory
/// lets peal remove these files. The second variable is for version 5.
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

FleetOrAbsent mpi_fleet(const Setup& setup, const Mpi& mpi) {
  if (setup.net != nullptr && mpi.name != "openmpi") {
    return Absent{mpi.name, "peal bench does not measure it between hosts"};
  }
  const Built built = build_worker(mpi, *setup.folder);
  if (built.program.empty()) {
    return Absent{mpi.name,
                  fmt::format("{} could not build the worker: {}", mpi.compiler, built.problem)};
  }
  Fleet fleet{.backend = mpi.name, .transport = "default", .ranks = setup.ranks};
  fleet.memory.push_back(make_flags(setup.ranks));
  std::vector<std::string> words = start_of(mpi, setup);
  words.insert(words.end(),
               {built.program,
                mpi.name,
                setup.socket,
                path_of_shared_file(fleet.memory[0]),
                name_of(setup.waiting)});
  std::string program = find_program(words.front()).value();
  launch::Variables variables = setup.inherited;
  variables["TMPDIR"] = setup.folder->path();  // so that remaining files are removed
  if (mpi.name == "openmpi") give_segments(fleet, variables);
  fleet.processes.push_back({.rank = 0,
                             .program = std::move(program),
                             .arguments = std::move(words),
                             .environment = std::move(variables),
                             .cpus = {}});
  return fleet;
}

}  // namespace peal::bench
