// The guard of an elastic job: starts processes on this machine by a guard process, and on other
// hosts by agents, which it connects while the job runs. Made by the program `peal run`.
#pragma once

#include <deque>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peal/launch/agents/agent_guard.h"
#include "peal/launch/agents/agents.h"
#include "peal/launch/elastic/host_guard.h"
#include "peal/launch/local_guard.h"
#include "peal/system/fd.h"

namespace peal::launch::agents {

/// What the launcher gives to the processes.
struct LauncherFacts {
  std::vector<std::string> command{};
  Variables environment{};  // of the launcher
  /// Whether a name may mean this machine. Names of Slurm's nodes do not.
  enum class Names : unsigned char { kOfHosts, kOfNodes } names = Names::kOfHosts;
};

class ElasticGuard final : public HostGuard {
 public:
  /// Forks the guard process of this machine, as LocalGuard. `agents` must outlive this object.
  /// Errors: resource.
  ElasticGuard(Agents& agents, LauncherFacts launcher, GuardDuty duty);

  int events() const override { return poll_.get(); }
  std::optional<GuardEvent> try_next() override;
  bool has_ended() const override { return local_.has_ended() && !local_gone_; }
  int orders() const override { return local_.orders(); }
  void pass_on(int signal, SignalOrigin origin) override;
  void stop(int signal, SignalOrigin origin) override;
  void ask_to_stop(int signal, SignalOrigin origin) override;
  void warn() override;
  void kill() override;
  void start(const RankCommand& command, const StandardFiles& files) override;
  void signal(Rank rank, int signal) override;
  std::string why_lost(Rank rank) const override { return remote_.why_lost(rank); }

  void connect(const std::string& host) override;
  void leave(const std::string& host) override;
  std::optional<HostEvent> try_next_host() override;
  void forget_round(int round) override { agents_.forget_round(round); }

 private:
  void take_names();
  void take_news();
  void connect_own(const std::string& host);
  void connect_other(const std::string& host);
  void refuse(const std::string& host, const std::string& problem, int exit_code = 1);
  HostFacts facts_of(const AgentHost& agent) const;

  Agents& agents_;
  const LauncherFacts launcher_;
  LocalGuard local_;
  AgentGuard remote_;
  Fd poll_;                        // both guards
  std::optional<int> local_gone_;  // the processes that survived
  std::optional<int> remote_gone_;
  bool has_told_gone_ = false;
  std::map<std::string, std::future<bool>> names_;  // that are looked up: is it this machine?
  std::vector<std::string> joining_;                // hosts of this machine, not yet ready
  std::set<std::string> own_;                       // hosts of this machine
  std::map<std::string, int> numbers_;              // of the agents of other hosts
  std::deque<HostEvent> host_events_;
};

}  // namespace peal::launch::agents
