// A job as a value: which programs run, how many of them, with which resources and limits. A job
// does not name its hosts. Made from a file (read_job.h) or from flags; a runner starts it.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/units.h"

namespace peal::launch {

/// The names of the runners (--to).
inline constexpr std::array<std::string_view, 5> kRunnerNames = {
    "local", "ssh", "slurm", "mpi", "kubernetes"};

/// How the names of peal's own labels begin, on pods and containers.
inline constexpr std::string_view kOwnLabels = "peal.";

/// The keys of Job::engine_options: the runners, and "container" for podman or docker, which run
/// the containers of all runners except Kubernetes.
inline constexpr std::array<std::string_view, 6> kEngineNames = {
    "local", "ssh", "slurm", "mpi", "kubernetes", "container"};

/// The resources of a node. Nothing: not limited.
struct Resources {
  std::optional<double> cpus{};  // cores; 0.5 is half a core
  std::optional<Bytes> memory{};
  std::optional<int> gpus{};
  std::optional<Bytes> shm{};  // the size of /dev/shm in a container; nothing: half of the memory
  friend bool operator==(const Resources&, const Resources&) = default;
};

/// How many nodes a role has. The job may shrink to `least` and grow to `most`.
struct NodeCount {
  int least = 1;
  int most = 1;
  friend bool operator==(const NodeCount&, const NodeCount&) = default;
};

/// A group of equal nodes. A node is a host, or a part of a host.
struct Role {
  std::string name;  // of letters, digits and "-"; unique
  NodeCount nodes{};
  int ranks_per_node = 1;              // processes that each node starts
  std::string image{};                 // of the container; empty: no container
  std::vector<std::string> command{};  // replaces the image's entrypoint; empty: the entrypoint
  std::vector<std::string> args{};     // after the command
  std::map<std::string, std::string> env{};  // overrides Job::env
  Resources resources{};
  /// Whether its processes are ranks. Other processes, such as evaluators, get no RANK. Their roles
  /// come after all roles with ranks.
  bool in_world = true;
  friend bool operator==(const Role&, const Role&) = default;
};

/// A file or a folder that the runner copies to each node before the job starts.
struct JobFile {
  std::string from;  // a path on this machine, relative to the file of the job
  std::string to;    // a path on the node; relative to Job::directory
  friend bool operator==(const JobFile&, const JobFile&) = default;
};

struct Restarts {
  int most = 0;                                 // 0: the first failure ends the job
  std::chrono::milliseconds first_pause{1000};  // doubles with each restart
  std::chrono::milliseconds longest_pause{60'000};
  friend bool operator==(const Restarts&, const Restarts&) = default;
};

/// The form of the file that described the job. It decides which variables each node gets.
enum class JobForm : unsigned char {
  kPeal,
  kTrainingInput,    // AI Platform Training: CLUSTER_SPEC and TF_CONFIG are set
  kWorkerPoolSpecs,  // Vertex AI: CLUSTER_SPEC and TF_CONFIG are set
};

struct Job {
  std::string name;
  std::vector<Role> roles{};  // the nodes of the first role have the lowest ranks
  std::map<std::string, std::string> env{};
  std::string directory{};  // where the commands start; empty: where the job was submitted
  std::vector<JobFile> files{};
  /// The role that decides the result: when its nodes have ended with 0, the job has succeeded, and
  /// the other nodes are asked to end. Empty: all roles decide.
  std::string success_role{};
  int spare_nodes = 0;  // unused hosts, each of which can replace a lost host
  Restarts restarts{};
  std::optional<std::chrono::seconds> max_run_time{};  // then the job is cancelled
  std::optional<std::chrono::seconds> warn_before{};   // max_run_time, the ranks are asked to stop
  std::chrono::seconds start_timeout{600};             // until all nodes have started
  std::chrono::milliseconds grace{5000};               // between SIGTERM and SIGKILL
  int priority = 0;
  std::map<std::string, std::string> labels{};
  /// Options for the command of an engine, by a name of kEngineNames: slurm: [--partition=gpu].
  std::map<std::string, std::vector<std::string>> engine_options{};
  JobForm form = JobForm::kPeal;
  /// What CLUSTER_SPEC and TF_CONFIG contain as "job": JSON, for the forms that set them.
  std::string document{};
  friend bool operator==(const Job&, const Job&) = default;
};

/// The nodes of all roles, at most.
int node_count(const Job& job);
/// The processes of all nodes, at most. Those of roles outside the world are counted too.
int rank_count(const Job& job);

/// Whether the processes of a role in the world are ranks. Otherwise the process of each node
/// starts the ranks, and RANK and WORLD_SIZE count nodes: in the managed forms, and if the command
/// is `peal run` and the node has one process.
bool processes_are_ranks(const Job& job, const Role& role);

/// The most nodes and ranks of a job, as in a launch (options.h). More are a mistake.
inline constexpr int kMostJobNodes = 32'768;
inline constexpr int kMostJobRanks = 32'768;

/// Checks the rules that all forms share: names, counts, a command or an image in each role, limits
/// that contradict each other. Errors: usage; the text names the field as in peal's own form
/// ("roles[0].nodes"), and the legal values.
void check(const Job& job);

}  // namespace peal::launch
