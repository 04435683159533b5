// The running fleets: starts their processes, accepts their connections, sends them commands, and
// ends them. The caller is the coordinator. If a worker dies, its backend is lost, and the others
// continue.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/bench/fleet.h"
#include "peal/bench/protocol.h"
#include "peal/launch/line_splitter.h"
#include "peal/launch/local_guard.h"
#include "peal/launch/signals.h"
#include "peal/launch/tail.h"
#include "peal/system/fd.h"

namespace peal::bench {

/// Thrown when a signal asks the program to end.
class SignalReceived final : public std::exception {
 public:
  explicit SignalReceived(int signal) : signal_(signal) {}
  const char* what() const noexcept override { return "interrupted"; }
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// One session at a time.
/// Threads: the only thread of the program, because it forks.
class Session final {
 public:
  /// Starts all fleets. Returns when every worker has connected, or its fleet is lost. `socket`: a
  /// listener at Setup::socket. Errors: resource; SignalReceived.
  Session(std::vector<Fleet> fleets, Fd socket, launch::SignalReader& signals);
  /// Lets the workers end, and kills workers that do not end.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  std::size_t size() const { return crews_.size(); }
  const Fleet& fleet(std::size_t index) const { return crews_[index].fleet; }
  /// The note of rank 0: versions and settings.
  const std::string& note(std::size_t index) const { return crews_[index].note; }
  /// Why the fleet is lost; empty if it is not lost.
  const std::string& loss(std::size_t index) const { return crews_[index].loss; }

  /// Sends the command to every rank of the fleet, and returns the answers in rank order. Returns
  /// nullopt if the fleet is lost, now or before. Errors: resource; SignalReceived.
  std::optional<std::vector<Answer>> ask(std::size_t index,
                                         const Command& command,
                                         Deadline deadline);

 private:
  struct Member {
    Fd socket;
    Fd process;  // a pidfd
    std::string read;
    std::optional<Answer> answer;
  };
  struct Crew {
    Fleet fleet;
    std::vector<Member> members;  // by rank
    std::string note, loss;
  };
  /// A started process and its output.
  struct Process {
    std::size_t crew = 0;
    Rank rank = 0;
    Fd output;
    std::unique_ptr<launch::Tail> tail = std::make_unique<launch::Tail>();
    std::unique_ptr<launch::LineSplitter> lines;
    std::optional<int> status;
  };
  struct Newcomer {
    Fd socket;
    std::string read;
  };
  enum class Guarded : unsigned char { kSome, kNone };

  launch::GuardDuty make_duty();
  void meet(Deadline deadline);
  bool all_have_come() const;
  void wait_for_news(Deadline deadline);
  void handle_signals();
  void take_events();
  void read_output(Process& process);
  void accept_newcomer();
  void read_from(Newcomer& newcomer);
  void read_from(Crew& crew, Member& member);
  void lose(Crew& crew, const std::string& why);
  void lose_by_silence(Crew& crew);
  std::string last_words(const Crew& crew) const;
  void end_workers() noexcept;
  void wait_for_end(Deadline deadline);

  std::vector<Crew> crews_;
  std::vector<Process> processes_;
  std::vector<Fd> writers_;
  std::vector<Newcomer> newcomers_;
  Fd listener_;
  launch::SignalReader& signals_;
  Guarded guarded_ = Guarded::kSome;
  enum class Stage : unsigned char { kRunning, kInterrupted, kEnding } stage_ = Stage::kRunning;
  std::unique_ptr<launch::LocalGuard> guard_;
};

}  // namespace peal::bench
