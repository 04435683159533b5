#include "peal/launch/containers/container_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/config/config.h"
#include "peal/launch/containers/engine_client.h"

namespace peal::launch::containers {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kSecret = "PEAL_SECRET";
constexpr const char* kSecretFile = "PEAL_SECRET_FILE";

constexpr std::array<std::string_view, 4> kInherited = {"PEAL_", "HOROVOD_", "OMP_", "NCCL_"};

/// podman, docker and the programs that they start read these themselves.
constexpr std::array<std::string_view, 8> kNamesOfEngine = {
    "PATH", "HOME", "USER", "SHELL", "TMPDIR", "TERM", "NOTIFY_SOCKET", "INVOCATION_ID"};
constexpr std::array<std::string_view, 18> kBeginningsOfEngine = {"XDG_",
                                                                  "LD_",
                                                                  "LC_",
                                                                  "LISTEN_",
                                                                  "DBUS_",
                                                                  "CONTAINER",
                                                                  "DOCKER_",
                                                                  "PODMAN_",
                                                                  "BUILDAH_",
                                                                  "STORAGE",
                                                                  "REGISTRY_",
                                                                  "SSL_",
                                                                  "GO",
                                                                  "SSH_",
                                                                  "_CONTAIN",
                                                                  "CNI_",
                                                                  "NETAVAR",
                                                                  "TEST_GRAPH"};

bool begins_with_any(std::string_view name, auto beginnings) {
  return std::ranges::any_of(beginnings,
                             [&](auto beginning) { return name.starts_with(beginning); });
}

bool is_of_proxy(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name.ends_with("_proxy");
}

/// Whether the engine would take the variable for its own. A name with "*" is a pattern for podman.
bool engine_reads(const std::string& name) {
  return std::ranges::count(kNamesOfEngine, name) > 0 ||
         begins_with_any(name, kBeginningsOfEngine) || is_of_proxy(name) ||
         name.find('*') != std::string::npos;
}

void add_line(const std::string& name, const std::string& value, std::string& lines) {
  if (value.find_first_of("\n\r") != std::string::npos) {
    throw Error(ErrorKind::kUsage,
                fmt::format("the variable {} has several lines, and no container can get it: the "
                            "engine itself reads {} too; rename it",
                            name,
                            name));
  }
  lines += fmt::format("{}={}\n", name, value);
}

/// The secret goes into a file, which the process container-rank writes.
void take_secret(Variables& inside, Variables& carried, Words& words) {
  bool has_secret = false;
  for (const char* name : {kSecret, kSecretFile}) {
    const auto found = inside.find(name);
    if (found == inside.end() || found->second.empty()) continue;
    carried[name] = found->second;
    has_secret = true;
  }
  inside.erase(kSecret);
  inside.erase(kSecretFile);
  if (has_secret) words.push_back(fmt::format("--env={}={}", kSecretFile, kSecretPath));
}

void add_variables(Variables inside, Variables& carried, Words& words) {
  take_secret(inside, carried, words);
  // Set by an outer launcher. `peal container-rank` sets the variable of the rank.
  inside.erase(kStopFlagVariable);
  std::string lines;
  for (const auto& [name, value] : inside) {
    if (engine_reads(name)) {
      add_line(name, value, lines);
      continue;
    }
    carried[name] = value;
    words.push_back("--env=" + name);
  }
  if (!lines.empty()) carried[kFileVariable] = lines;
}

std::string joined(const std::vector<int>& numbers) {
  return fmt::format("{}", fmt::join(numbers, ","));
}

void add_limits(const RankCommand& rank,
                const Container& container,
                EngineKind kind,
                Words& words) {
  if (container.memory) words.push_back(fmt::format("--memory={}b", container.memory->value));
  if (container.cpus) words.push_back(fmt::format("--cpus={}", *container.cpus));
  const auto shm = container.shm      ? container.shm
                   : container.memory ? std::optional(*container.memory / 2)
                                      : std::nullopt;
  if (shm) words.push_back(fmt::format("--shm-size={}b", shm->value));
  if (container.has_gpus) {
    words.emplace_back(kind == EngineKind::kDocker ? "--gpus=all" : "--device=nvidia.com/gpu=all");
  }
  // podman's processes inherit the CPUs of its command. docker's daemon starts the processes.
  if (kind == EngineKind::kDocker && !rank.cpus.empty()) {
    words.push_back("--cpuset-cpus=" + joined(rank.cpus));
  }
}

void add_labels(const RankCommand& rank, const Container& container, Words& words) {
  const auto job = rank.environment.find("PEAL_JOB");
  auto labels = container.labels;
  labels.try_emplace(kJobLabel, job == rank.environment.end() ? "" : job->second);
  labels["peal.rank"] = fmt::format("{}", rank.rank);
  for (const auto& [name, value] : labels) {
    words.push_back(fmt::format("--label={}={}", name, value));
  }
}

/// The record of a rank's last operations is a mapped file on the host.
void add_records(const RankCommand& rank, Words& words) {
  const auto folder = rank.environment.find(kFlightDirVariable);
  if (folder == rank.environment.end() || !folder->second.starts_with('/')) return;
  words.push_back(fmt::format("--volume={0}:{0}:z", folder->second));
}

}  // namespace

Variables inherited_in_container(const Variables& variables) {
  Variables chosen;
  for (const auto& [name, value] : variables) {
    if (begins_with_any(name, kInherited)) chosen.emplace(name, value);
  }
  return chosen;
}

std::string container_name(const RankCommand& rank, const Container& container) {
  const auto job = rank.environment.find("PEAL_JOB");
  std::string id = job == rank.environment.end() ? "job" : job->second;
  for (char& c : id) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  }
  return fmt::format("peal-{}-{}-{}", id, container.attempt, rank.rank);
}

RankCommand in_container(const RankCommand& rank,
                         const Container& container,
                         const std::string& engine,
                         const Variables& outside) {
  const EngineKind kind = kind_of(engine);
  const std::string name = container_name(rank, container);
  Variables carried = outside;
  carried.erase(kSecret);
  carried.erase(kSecretFile);
  // The image is here (find_image). peal shows and stores the output, so the engine need not.
  Words words = {"peal",
                 kRankWord,
                 engine,
                 name,
                 container.image,
                 "run",
                 "--name=" + name,
                 "--init",
                 "--pull=never",
                 "--log-driver=none",
                 "--network=" + container.network};
  if (kind == EngineKind::kPodman) words.emplace_back("--http-proxy=false");
  add_labels(rank, container, words);
  add_limits(rank, container, kind, words);
  add_records(rank, words);
  add_variables(rank.environment, carried, words);
  if (!container.directory.empty()) words.push_back("--workdir=" + container.directory);
  words.insert(words.end(), container.options.begin(), container.options.end());
  auto argument = rank.arguments.begin();
  if (container.entrypoint == Entrypoint::kReplaced && argument != rank.arguments.end()) {
    words.push_back("--entrypoint=" + *argument++);
  }
  words.push_back(container.image);
  words.insert(words.end(), argument, rank.arguments.end());
  return {.rank = rank.rank,
          .program = kOwnProgram,
          .arguments = std::move(words),
          .environment = std::move(carried),
          .cpus = rank.cpus,
          .host = rank.host,
          .after_end = {kOwnProgram, kEndWord, engine, name}};
}

}  // namespace peal::launch::containers
