// The agents of a job on all its hosts: connects with the agents, reports hosts that cannot be used
// and hosts that are lost, and passes on frames. Made by the program `peal run` for a job on other
// hosts.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peal/launch/agents/agent_host.h"
#include "peal/launch/signals.h"
#include "peal/system/fd.h"

namespace peal::launch::agents {

/// For Begin::silence: an agent ends its ranks after this silence of the launcher. The launcher may
/// be stopped for a while (SIGSTOP), or its machine may be very busy.
inline constexpr Timeout kAgentPatience{15'000};
/// For collect_records: how long the records of all hosts may take to arrive after a failure.
inline constexpr Timeout kRecordsLimit{10'000};

/// The options that all hosts of a job share.
struct AgentsOptions {
  EngineOptions engine;
  Begin begin;
  std::vector<FileToCopy> files{};
  std::string version;  // of this peal
  Patience patience{};
};

/// A host that became ready, cannot be used, or was lost.
struct HostNews {
  int host = 0;
  AgentHost::State state = AgentHost::State::kReady;
};

/// Threads: one. Forks a process for each host, so create it before the program has a second
/// thread. `signals`: block SIGPIPE, and have the signal mask of the engine's commands.
class Agents final {
 public:
  Agents(AgentsOptions options, SignalReader& signals);
  /// Closes all connections. Then the agents end ranks that still run.
  ~Agents();
  Agents(const Agents&) = delete;

  /// Starts to connect, and returns the number of the host: 0 for the first call, and so on. If the
  /// name means this machine, its agent starts without the engine's command. `needs`: instead of
  /// those in the options. Errors: resource.
  int add(const std::string& host, std::optional<HostNeeds> needs = std::nullopt);
  /// The same for a name that does not mean this machine. Does not block. Threads: the program may
  /// have others.
  int add_other(const std::string& host);
  /// Ends the connection, if there is one. Ranks that still run there are ended.
  void leave(int host, const std::string& reason);
  int count() const { return static_cast<int>(hosts_.size()); }
  const AgentHost& host(int number) const { return *hosts_[static_cast<std::size_t>(number)]; }
  AgentHost& host(int number) { return *hosts_[static_cast<std::size_t>(number)]; }

  /// Readable when the caller must call `advance`: at least five times a second.
  int readable() const { return poll_.get(); }
  /// Reads and writes without blocking, and checks the limits.
  void advance();
  /// The next change of a host. Returns nothing if no host has changed.
  std::optional<HostNews> try_next_news();
  /// Stops reading from the host, because the pipe for its output is full. From then on,
  /// `readable` also reports when the pipe has room. -1: continues to read.
  void pause(int host, int full_pipe);

  /// From then on, `readable` also reports when this file is readable. -1: none.
  void watch_input(int fd);

  /// Waits until each host is ready, or cannot be used, or `should_stop` returns true. Calls it
  /// several times a second.
  void await_all(const std::function<bool()>& should_stop);

  /// After the ranks have ended: copies the records of ranks 0 to ranks-1 from all hosts into
  /// `folder`. Files that do not arrive within `limit`, or before a signal, are missing. Does
  /// nothing if `folder` is empty.
  void collect_records(const std::string& folder, int ranks, Timeout limit);
  /// The same for one round of an elastic job. `ranks`: those of each host, by its name.
  void collect_round(const std::string& folder,
                     int round,
                     const std::map<std::string, std::vector<Rank>>& ranks,
                     Timeout limit);
  /// Hosts with a private folder for records remove those of the round.
  void forget_round(int round);

 private:
  struct Watch {
    int in = -1;
    int out = -1;
    int errors = -1;
    int full_pipe = -1;
    friend bool operator==(const Watch&, const Watch&) = default;
  };

  int add(const std::string& host, const EngineOptions& engine, Begin begin);
  /// `orders`: by host.
  void collect(const std::map<int, RecordOrder>& orders,
               const std::string& folder,
               const std::set<std::string>& names,
               Timeout limit);
  std::set<int> hosts_with_events();
  /// Returns whether no more records come from the host.
  bool take_records(int host, const std::string& folder, const std::set<std::string>& names);
  void watch(int host);
  void note_changes(int host);

  const AgentsOptions options_;
  SignalReader& signals_;
  Fd poll_;
  Fd timer_;
  int input_ = -1;
  std::vector<std::unique_ptr<AgentHost>> hosts_;
  std::vector<AgentHost::State> known_;  // of each host
  std::vector<Watch> watches_;
  std::map<int, int> full_pipes_;  // by host
  std::vector<HostNews> news_;
};

}  // namespace peal::launch::agents
