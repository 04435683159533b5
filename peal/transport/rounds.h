// One thread that moves the mail of all groups of this process. In turn, it does a round for each
// group that may have work. Between rounds it sleeps for all groups at once. The native backend
// runs the message loop of a group on this thread if all ranks of the group share memory. Such a
// group needs no thread of its own.
#pragma once

#include <list>
#include <thread>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/guarded.h"
#include "peal/base/per_process.h"
#include "peal/transport/alarm.h"
#include "peal/transport/ring_channel.h"

namespace peal::transport {

/// Threads: `add` and `remove` from any thread but its own.
class Rounds {
 public:
  /// A time that has passed.
  static constexpr TimePoint kAtOnce{};

  /// The work for one channel, on the thread of the rounds.
  class Member {
   public:
    /// Does what can be done without waiting; all other members wait meanwhile. Adds to
    /// `interests`, which is empty, the events of the channel that call for another round. Returns
    /// the time of the next round if no event comes before. An `interrupt` of the channel calls for
    /// a round, too.
    virtual TimePoint round(std::vector<Interest>& interests) noexcept = 0;

   protected:
    ~Member() = default;
  };

  /// Errors: resource.
  Rounds() = default;
  /// Does nothing in a forked child: the thread belongs to the parent.
  ~Rounds();
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  /// The doorbells of all channels ring its event.
  Alarm& alarm() { return alarm_; }

  /// The channel and the member outlive the membership. The first `add` starts the thread. Errors:
  /// resource.
  void add(RingChannel& channel, Member& member);
  /// After the return no round of the member runs or will run. Does nothing if the member was not
  /// added.
  void remove(const Member& member) noexcept;

 private:
  struct Entry {
    RingChannel& channel;
    Member& member;
    TimePoint due = kAtOnce;  // the thread's own
    bool leaving = false;     // has no more rounds
  };

  using Entries = std::list<Entry>;
  struct All {
    Entries entries = {};
    Entries::iterator inside = entries.end();  // whose round is under way
    bool stopping = false;
  };

  void run();
  bool is_stopping();
  /// Sleeps until the event is rung, a process ends or the time has come. Returns whether any
  /// channel may be ready.
  bool wait_until(TimePoint next) noexcept;
  /// The round of a member, with the interests of its next sleep.
  void go_round(Entry& entry) noexcept;
  /// Checks all members once, and does the rounds that are needed. `woken`: any channel may be
  /// ready. Returns the time of the next check.
  TimePoint go_around(bool woken);

  const OwnerProcess owner_;
  Alarm alarm_;

  Guarded<All> all_;
  /// Started while `all_` is held. Not part of `all_`: a forked child leaves the thread to the
  /// parent, and in the child the mutex may be held for good.
  std::thread thread_;

  // The thread's own.
  std::vector<Interest> interests_;
};

/// The mail of a transport that needs no thread of its own: `rounds` waits for `channel`. No other
/// thread calls `wait` of the channel.
struct SharedMail {
  RingChannel& channel;
  Rounds& rounds;
};

}  // namespace peal::transport
