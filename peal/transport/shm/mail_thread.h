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
#include "peal/system/per_process.h"
#include "peal/transport/shm/alarm.h"
#include "peal/transport/shm/ring_channel.h"

namespace peal::transport {

/// Threads: `add` and `remove` from any thread but its own.
class MailThread {
 public:
  /// A time that has passed.
  static constexpr TimePoint kAtOnce{};

  /// The work for one channel, done on this thread.
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
  MailThread() = default;
  /// Does nothing in a forked child: the thread belongs to the parent.
  ~MailThread();
  MailThread(const MailThread&) = delete;
  MailThread& operator=(const MailThread&) = delete;

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
    TimePoint due = kAtOnce;  // used by the thread only
    bool leaving = false;     // has no more rounds
  };

  using Entries = std::list<Entry>;
  struct All {
    Entries entries = {};
    Entries::iterator inside = entries.end();  // the entry whose round is running
    bool stopping = false;
  };

  void run();
  bool is_stopping();
  enum class Channels : unsigned char { kIdle, kMayBeReady };

  /// Sleeps until the event is rung, a process ends or the time has come.
  Channels wait_until(TimePoint next) noexcept;
  /// The round of a member, with the interests of its next sleep.
  void run_round(Entry& entry) noexcept;
  /// Checks all members once, and does the rounds that are needed. Returns the time of the next
  /// check.
  TimePoint check_all(Channels channels);

  const OwnerProcess owner_;
  Alarm alarm_;

  Guarded<All> all_;
  /// Started while `all_` is held. Not part of `all_`: a forked child leaves the thread to the
  /// parent, and in the child the mutex may be held for good.
  std::thread thread_;

  // Used by the thread only.
  std::vector<Interest> interests_;
};

/// The mail of a transport that needs no thread of its own: `mail_thread` waits for `channel`. No
/// other thread calls `wait` of the channel.
struct SharedMail {
  RingChannel& channel;
  MailThread& mail_thread;
};

}  // namespace peal::transport
