// The guard of processes on other hosts: passes the launcher's orders to the agents, and their
// events and output back. Made by run_on_hosts.h.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peal/launch/agents/agents.h"
#include "peal/launch/agents/rank_input.h"
#include "peal/launch/guard.h"
#include "peal/launch/guard_process.h"

namespace peal::launch::agents {

class AgentGuard final : public Guard {
 public:
  /// `agents` must outlive the guard. With Starts::kAtOnce, the guard ends after the last process
  /// that was started before the first call of `try_next`.
  AgentGuard(Agents& agents, Starts starts);
  ~AgentGuard() override;

  int events() const override { return agents_.readable(); }
  std::optional<GuardEvent> try_next() override;
  bool has_ended() const override { return false; }  // this guard is a part of the launcher
  int orders() const override { return -1; }         // the connections have queues
  void pass_on(int signal, SignalOrigin origin) override;
  void stop(int signal, SignalOrigin origin) override;
  void ask_to_stop(int signal, SignalOrigin origin) override;
  void warn() override;
  void kill() override;
  /// `command.host` is the name of a host that is ready, or was. If the name was added to the
  /// agents several times, the last one counts.
  void start(const RankCommand& command, const StandardFiles& files) override;
  void signal(Rank rank, int signal) override;
  std::string why_lost(Rank rank) const override;

  /// The next change of a host. Returns nothing if `try_next` has seen no further change.
  std::optional<HostNews> try_next_news();

 private:
  /// A process, and the pipes for its output.
  struct Process {
    int host = 0;
    bool is_running = true;
    std::string why_lost{};
    Fd out{};
    Fd err{};
  };

  void advance();
  void take_frames(int host);
  bool is_paused(int host) const;
  void handle(int host, const Frame& frame);
  void take_event(int host, const GuardEvent& event);
  /// Output of one host that its pipes do not take yet.
  struct Unwritten {
    std::deque<Output> queue{};
    std::size_t bytes = 0;
  };

  void take_output(int host, Output output);
  /// Returns whether all output of the host is written.
  bool write_output(int host);
  /// Returns whether all bytes are written, or nothing takes them.
  bool write(Output& output, int host);
  void pause_if_full(int host);
  void send_input();
  void lose_guard(int host);
  /// No more comes from the host. Its processes that run are lost.
  void take_leave(int host, const std::string& why);
  void close_outputs(int host);
  int number_of(const std::string& host) const;
  void end_if_done();
  void send_to_all(FrameKind kind, int signal);
  void stop_by(FrameKind kind, int signal);

  Agents& agents_;
  const Starts starts_;
  std::map<Rank, Process> processes_;
  std::map<int, Unwritten> unwritten_;  // by host
  std::optional<InputSource> input_;    // of the process input_rank_
  Rank input_rank_ = -1;
  std::set<int> gone_;  // hosts without processes, or without a connection
  bool has_warned_ = false;
  std::deque<GuardEvent> events_;
  std::deque<HostNews> news_;
  enum class Stage : unsigned char { kRunning, kStopping, kGone } stage_ = Stage::kRunning;
  int survivors_ = 0;
};

}  // namespace peal::launch::agents
