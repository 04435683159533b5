// The agents of a job on all its hosts: connects with them, reports hosts that refuse and hosts
// that are lost, and passes on frames. Made by the program `peal run` for a job on other hosts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peal/launch/agents/agent_host.h"
#include "peal/system/fd.h"

namespace peal::launch::agents {

/// What is common to all hosts of a job.
struct AgentsOptions {
  EngineOptions engine;
  Begin begin;
  std::string version;  // of this peal
  Patience patience{};
};

/// A host that became ready, refused, or was lost.
struct HostNews {
  int host = 0;
  AgentHost::State state = AgentHost::State::kReady;
};

/// Threads: one. Forks a process for each host, so create it before the program has a second
/// thread. Blocks SIGPIPE while it lives.
class Agents final {
 public:
  explicit Agents(AgentsOptions options);
  /// Closes all connections: agents whose ranks still run end them.
  ~Agents();
  Agents(const Agents&) = delete;

  /// Starts to connect. The number of the host is its place in the order of the calls. A name that
  /// means this machine gets an agent without the engine's command. Errors: resource.
  int add(const std::string& host);
  int count() const { return static_cast<int>(hosts_.size()); }
  const AgentHost& host(int number) const { return *hosts_[static_cast<std::size_t>(number)]; }
  AgentHost& host(int number) { return *hosts_[static_cast<std::size_t>(number)]; }

  /// Readable when `advance` has something to do: at least five times in a second.
  int readable() const { return poll_.get(); }
  /// Reads and writes without blocking, and checks the limits.
  void advance();
  /// The next change of a host; nothing if there is none.
  std::optional<HostNews> try_next_news();
  /// Reads no frames of the host, because the pipe for its output is full. Then `readable` also
  /// reports that the pipe can be written. -1: reads again.
  void pause(int host, int full_pipe);

  /// Waits until all hosts are ready, or have refused.
  void await_all();

  /// After the ranks have ended: copies the records of ranks 0 to ranks-1 from all hosts into
  /// `folder`. Files that do not arrive within `limit` are missing. Does nothing if `folder` is
  /// empty.
  void collect_records(const std::string& folder, int ranks, Timeout limit);

 private:
  struct Watch {
    int in = -1;
    int out = -1;
    int errors = -1;
    int full_pipe = -1;
    friend bool operator==(const Watch&, const Watch&) = default;
  };

  std::set<int> hosts_with_events();
  /// Returns whether no more records come from the host.
  bool take_records(int host, const std::string& folder, const std::set<std::string>& names);
  void watch(int host);
  void note_changes(int host);

  const AgentsOptions options_;
  sigset_t mask_{};  // before SIGPIPE was blocked
  Fd poll_;
  Fd timer_;
  std::vector<std::unique_ptr<AgentHost>> hosts_;
  std::vector<AgentHost::State> known_;  // of each host
  std::vector<Watch> watches_;
  std::map<int, int> full_pipes_;  // by host
  std::vector<HostNews> news_;
};

}  // namespace peal::launch::agents
