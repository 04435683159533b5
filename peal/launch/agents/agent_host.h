// A host as the launcher sees it: the engine's process that reaches it, the handshake, and the
// connection with its agent. Owned by agents.h.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/agents/agent_link.h"
#include "peal/launch/agents/engine.h"
#include "peal/launch/agents/file_copy.h"
#include "peal/system/fd.h"
#include "peal/system/private_folder.h"

namespace peal::launch::agents {

/// The silence after which a host is lost: `least` times the ranks on each CPU, but at least
/// `least` and at most kMostPatience. The agent waits for CPU time if each CPU has several ranks.
Duration silence_limit(Duration least, int ranks, std::size_t cpus);

/// How long the launcher waits for a host.
struct Patience {
  Timeout start{60'000};   // from the start of the engine's command to the agent's answer
  Timeout silence{2'000};  // without a frame; then the host is lost
  friend bool operator==(const Patience&, const Patience&) = default;
};

class AgentHost final {
 public:
  enum class State : unsigned char {
    kStarting,  // the agent has not written its banner yet
    kAsked,     // the launcher has sent kBegin
    kReady,     // ranks can start
    kRefused,   // ranks cannot start: see `problem`
    kLost,      // was ready, and the connection is gone: see `problem`
  };

  /// Starts the engine's command. `files`: to copy to the host. `version`: of this peal. `mask`:
  /// the signal mask of the command. If the command cannot start, the state becomes kRefused.
  /// Errors: resource.
  AgentHost(std::string name,
            const EngineOptions& engine,
            Begin begin,
            std::vector<FileToCopy> files,
            std::string version,
            const sigset_t& mask);
  ~AgentHost();
  AgentHost(const AgentHost&) = delete;

  const std::string& name() const { return name_; }
  State state() const { return state_; }
  bool is_ready() const { return state_ == State::kReady; }
  /// Why the host cannot be used, or was lost.
  const std::string& problem() const { return problem_; }
  /// Whether this machine cannot use the engine's program. Then all hosts have the same problem.
  bool lacks_engine() const { return lacks_engine_; }
  /// The exit code that a shell would give for the problem with the command.
  int exit_code() const { return facts_.exit_code; }
  /// The facts of the host, which must be ready.
  const Ready& facts() const { return facts_; }
  AgentLink& link() { return link_; }
  /// Adds `more` to the number of running ranks, for `silence_limit`. Negative: ranks have ended.
  void note_ranks(int more) { ranks_ += more; }
  /// The engine's stderr; -1 at its end.
  int errors() const { return errors_.get(); }

  /// Reads from the agent. The caller then takes frames from `link` if the host is ready.
  void read_some(TimePoint now);
  void read_errors();
  /// Checks the limits, and whether the connection still exists. Sends a heartbeat.
  void check(TimePoint now, const Patience& patience);
  /// Ends the connection. The host is then refused or lost, for this reason.
  void leave(const std::string& reason);
  /// Orders the agent to end its ranks, and closes the connection. Without this order, the agent
  /// takes the launcher for lost.
  void disconnect();
  /// The agent has announced that a signal ends the agent.
  void note_ending(std::string signal) { ending_ = std::move(signal); }
  bool is_ending() const { return !ending_.empty(); }

 private:
  void take_banner(TimePoint now);
  void send_files();
  void take_answer();
  void find_addresses();
  void refuse(const std::string& problem);
  void lose(const std::string& problem);
  void end(State state, const std::string& problem);
  std::string reason_of_end();
  /// Waits for the engine's process, and kills it at the deadline. Returns its status, as
  /// waitpid(2) gives it.
  int end_process(Deadline deadline);

  const std::string name_;
  const EngineOptions engine_;
  Begin begin_;
  FilePartReader files_;
  bool has_more_files_ = false;
  const std::string version_;
  State state_ = State::kStarting;
  std::string problem_;
  bool lacks_engine_ = false;
  std::string ending_;
  Ready facts_;
  std::optional<PrivateFolder> mpirun_files_;
  int ranks_ = 0;  // that run there
  pid_t pid_ = -1;
  Deadline kill_at_{TimePoint::max()};  // the engine's process
  Fd errors_;
  std::string error_text_;  // the end of the engine's stderr
  std::string before_;      // text before the banner
  const TimePoint started_ = Clock::now();
  AgentLink link_;
};

}  // namespace peal::launch::agents
