// The inside of the guard: the process that starts the ranks, waits for them and kills the
// processes that they leave. The guard adopts every orphan among the ranks' descendants. If the
// launcher is killed, a pipe closes, and the guard kills all ranks. Forked by `Guard`.
#pragma once

#include <signal.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peal/base/clock.h"
#include "peal/launch/guard_messages.h"
#include "peal/launch/rank_command.h"
#include "peal/launch/start_process.h"
#include "peal/system/fd.h"
#include "peal/system/private_folder.h"
#include "peal/system/stop_flag.h"

namespace peal::launch {

/// How long commands after the end of ranks may take.
inline constexpr Timeout kAfterEndLimit{60'000};

/// Whether the launcher orders further ranks to be started.
enum class Starts : unsigned char {
  kAtOnce,     // the guard ends with its last process
  kAlsoLater,  // the guard stays until the launcher stops the ranks, also without any rank
};

/// The arguments of a guard.
struct GuardDuty {
  std::vector<RankCommand> ranks{};  // each with another number in `rank`
  RankFunction function{};           // what the ranks run; empty: their programs
  std::vector<int> outputs{};        // [2 i] and [2 i + 1]: stdout and stderr of ranks[i]
  pid_t terminal_group =
      0;            // the first rank joins this process group, to read the terminal; 0: it does not
  sigset_t mask{};  // the ranks' signal mask
  Timeout grace{};
  int orders = -1;  // a unix socket, or a pipe end if no rank is started later
  int events = -1;  // a pipe end
  Starts starts = Starts::kAtOnce;
};

/// How the names of the folders of stop flags begin. A folder remains only if the guard was killed.
std::string stop_flags_prefix();

class GuardProcess final {
 public:
  explicit GuardProcess(const GuardDuty& duty);

  /// Returns when no descendant is left, or when the last ones survived SIGKILL.
  void run();

 private:
  struct Started {
    pid_t pid = -1;
    pid_t target = 0;  // for kill(2): its group, or the process if it is in the terminal's group
    std::optional<StopFlag> stop_flag{};
    Fd running{};  // to the stdin of its command after_end; closed after the end of the rank
    pid_t after_end = -1;  // the process of this command
    Fd end_detail{};       // kEndPipeVariable: the other end
  };
  /// A process of RankCommand::after_end.
  struct AfterEnd {
    RankCommand rank{};
    int restarts = 0;
  };

  void start_ranks();
  bool start(RankCommand command, Placement placement, const RankFunction& function);
  int start_processes(RankCommand command,
                      Placement placement,
                      const RankFunction& function,
                      Started& started);
  void start_by_order(const GuardOrder& order);
  /// Whether a further rank may come, so that the guard must not end.
  bool waits_for_ranks() const;
  void tell(const GuardEvent& event) const;
  void reap();
  GuardEvent describe_end(Rank rank, pid_t pid, int status);
  /// The descendants that may be killed: all but the commands after the end of ranks.
  std::vector<pid_t> leftovers() const;
  void obey();
  void follow(const GuardOrder& order);
  void tell_stopped() const;
  void pass_on(int signal, SignalOrigin origin) const;
  void stop(const GuardOrder& order);
  int start_after_end_of(AfterEnd after_end, Started* running);
  void restart_after_end(pid_t killed, AfterEnd after_end);
  std::optional<StopFlag> make_stop_flag(RankCommand& command);
  void remove_stop_flag(Rank rank) const;
  void set_stop_flags(int signal);
  void signal_one(Rank rank, int signal) const;
  void end_by(TimePoint deadline);
  void clear_up(TimePoint now);
  void tell_leftovers_to_end(TimePoint now);
  Timeout longest_wait(TimePoint now) const;
  void wait_for_news() const;

  const GuardDuty& duty_;
  Fd child_news_;  // signalfd of SIGCHLD
  Fd null_;
  std::map<Rank, Started> ranks_;             // that run
  std::set<pid_t> signalled_;                 // leftover processes that have received SIGTERM
  std::optional<std::int64_t> memory_kills_;  // processes that the kernel killed, and are reported
  std::map<pid_t, AfterEnd> after_ends_;      // of the processes that run
  std::optional<PrivateFolder> stop_flags_;   // the folder of their files
  std::optional<int> request_;                // the value of the flags, once set
  enum class Launcher : unsigned char { kAlive, kLost } launcher_ = Launcher::kAlive;
  enum class Children : unsigned char { kSome, kNone } children_ = Children::kSome;
  TimePoint deadline_ = TimePoint::max();  // at this time all processes are killed
};

}  // namespace peal::launch
