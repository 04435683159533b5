// A thread that does its rounds: for the mail of each group of this process in turn, whenever there
// may be something to do. Between them it sleeps for all of them at once. The native backend has
// its message loops on it, where all ranks of a group share memory: such a group needs no thread.
#pragma once

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/per_process.h"
#include "peal/transport/alarm.h"
#include "peal/transport/ring_channel.h"

namespace peal::transport {

/// Threads: `add` and `remove` from any but its own.
class Rounds {
 public:
  /// A moment that has passed.
  static constexpr TimePoint kAtOnce{};

  /// What is to be done for a channel, on the thread of the rounds.
  class Member {
   public:
    /// Does what can be done without waiting. Fills `interests`, which are empty, with what of the
    /// channel calls for another round, and returns when there is to be one in any case. An
    /// `interrupt` of the channel calls for a round, too. All other members wait meanwhile.
    virtual TimePoint round(std::vector<Interest>& interests) noexcept = 0;

   protected:
    ~Member() = default;
  };

  /// Errors: resource.
  Rounds() = default;
  /// In a forked child nothing is done: the thread is the parent's.
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  /// The doorbells of all channels are by its event.
  Alarm& alarm() { return alarm_; }

  /// Both outlive their membership. The first one starts the thread. Errors: resource.
  void add(RingChannel& channel, Member& member);
  /// When it returns, the member is not in a round, and will not be in one. Of one that is not
  /// there, nothing.
  void remove(const Member& member) noexcept;

 private:
  struct Entry {
    RingChannel& channel;
    Member& member;
    TimePoint due = kAtOnce;  // the thread's own
  };

  void run();
  /// One look at all of them. `woken`: anything may have happened. Returns when the next is due.
  TimePoint go_around(std::unique_lock<std::mutex>& lock, bool woken);

  const OwnerProcess owner_;
  Alarm alarm_;

  std::mutex mutex_;
  std::condition_variable left_;  // a round has ended
  std::list<Entry> entries_;
  const Entry* inside_ = nullptr;  // whose round is under way
  bool stopping_ = false;
  std::thread thread_;

  // The thread's own.
  std::vector<Interest> interests_;
};

/// The mail of a transport that needs no thread of its own: `channel`, and who waits for it. Nobody
/// else calls its `wait`.
struct SharedMail {
  RingChannel& channel;
  Rounds& rounds;
};

}  // namespace peal::transport
