// Drives a mailbox. A thread that sends or receives drives it while polling pays. Otherwise the
// loop's thread drives it, and sleeps while nothing moves. Groups whose ranks all share memory have
// one such thread for the whole process (transport/shm/mail_thread.h); every other group has its
// own. The loop also detects lost peers.
//
// While calls poll the mailbox, the loop's thread does not watch the streams, because peers would
// then wake it for each message. Instead the thread naps, does a round unless a call is polling,
// and checks again for polling calls. So an unexpected message is moved up to two naps late. Once a
// large message is in flight, the loop stays awake.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "peal/backends/native/backoff.h"
#include "peal/backends/native/fair_guarded.h"
#include "peal/backends/native/group_error.h"
#include "peal/backends/native/lost_peer.h"
#include "peal/base/interrupt.h"
#include "peal/group/backend.h"
#include "peal/mail/mailbox.h"
#include "peal/observe/group_recorder.h"
#include "peal/system/task_thread.h"
#include "peal/transport/shm/mail_thread.h"

namespace peal::native {

/// Threads: any number at once, but `leave` and `stop` from one at a time.
class MessageLoop final : private transport::MailThread::Member {
 public:
  /// The objects behind the references outlive the loop.
  struct Parts {
    Rank self = 0;
    int ranks = 0;
    transport::Transport& transport;
    GroupError& group_error;
    const observe::GroupRecorder& recorder;
    const LostPeers& lost_peers;
    Cores cores = Cores::kOwn;
    FairMutex& mutex;  // of the mailbox
    Interrupt interrupt;
    /// A rank that waits for this rank has sent its progress report. Called from other methods of
    /// this class, with the mutex locked.
    std::function<void(Rank peer, const engine::ProgressReport& report)> report_received;
    std::optional<Bytes> eager_bound;  // of the mailbox
  };

  explicit MessageLoop(Parts parts);
  ~MessageLoop();

  /// Posts all sends and receives. Throws the group error if it is set.
  std::vector<mail::TicketPtr> start(std::span<const Request> requests, Timeout timeout);
  /// Posts one message and waits for its end. Returns the rank at the other end.
  Rank run(const Request& request, Timeout timeout) {
    parts_.mutex.lock();
    return run_inside(request, timeout);
  }
  /// The same for a thread that has locked the mutex. Unlocks the mutex.
  Rank run_inside(const Request& request, Timeout timeout);

  /// The thread that runs callbacks after messages have ended. Closed only after the group error is
  /// set, because callbacks may wait for the group error.
  const std::shared_ptr<TaskThread>& afterwards() const { return afterwards_; }

  /// How the peer has left the group; nothing while it has not said so.
  std::optional<Departure> departure(Rank peer) {
    return mailbox_.with([&](const mail::Mailbox& mailbox) { return mailbox.departure(peer); });
  }

  /// Tells `peers` which operation this rank is in, because it waits for them.
  void send_progress_report(std::span<const Rank> peers, const engine::ProgressReport& report);

  /// Sets the group error to `cause`; the peers receive `to_peers` instead. Does nothing if the
  /// group error is set already.
  void give_up(const Error& cause, const Error& to_peers);
  /// Notifies the peers of the departure (and first of the group error, if it is set). Waits until
  /// the deadline for all sends, and stops. Returns the interrupt that ended the wait, if any.
  std::optional<Error> leave(Departure departure, Deadline deadline, const Interrupt& interrupt);
  /// Ends the loop's thread and all open messages, without a notice of departure. Waits for the
  /// calls that wait for these messages. A second call does nothing.
  void stop();

 private:
  using Inside = FairGuarded<mail::Mailbox>::Inside;

  void post(mail::Mailbox& mailbox, const mail::TicketPtr& ticket, const Request& request);
  /// Sends a small message that can leave now. Such a message needs no ticket.
  bool send_at_once(mail::Mailbox& mailbox, const Request& request);
  /// Polls until the ticket of a message from or to `peer` has ended, or sleeping is cheaper.
  void poll_until_ended(Inside& mailbox, Rank peer, mail::Ticket& ticket);
  /// For a call that leaves work to the loop.
  void call_loop();

  /// Runs on the loop's thread.
  void loop();
  /// A round, or a nap while calls poll the mailbox.
  TimePoint round(std::vector<transport::Interest>& interests) noexcept override;
  TimePoint try_round(std::vector<transport::Interest>& interests);
  /// Whether calls have moved messages since the loop last asked.
  bool calls_are_polling();
  /// Returns whether anything moved. Adds the events to wait for to `interests`, and lowers `next`
  /// to the time of the next round.
  bool move(mail::Mailbox& mailbox, std::vector<transport::Interest>& interests, TimePoint& next);
  bool pass_on_group_error(mail::Mailbox& mailbox);
  void check_deadlines(mail::Mailbox& mailbox, TimePoint& next);
  ErrorDetails details_of_missing(const mail::Ticket& ticket) const;
  std::string location_text(Rank peer) const;
  void lost(Rank peer);
  void left(Rank peer, Departure departure, const Error& error);
  /// Sets the group error to the result of `conclude`, on a thread of its own. `conclude` waits up
  /// to half a second for news of the peer. Calls and other groups must not wait for that.
  void set_later(std::function<Error()> conclude);

  const Parts parts_;
  FairGuarded<mail::Mailbox> mailbox_;
  const std::shared_ptr<TaskThread> afterwards_ = std::make_shared<TaskThread>();
  // Written by the thread that holds the mutex:
  std::atomic<bool> has_poller_ = false;  // a call polls
  std::atomic<std::uint64_t> calls_ = 0;  // how many calls have polled
  int waiting_ = 0;                       // calls that wait until another thread ends their tickets

  std::atomic<bool> called_ = false;  // a call has left work to the loop
  TaskThread conclusions_;
  // Used by the loop's thread:
  bool naps_ = false;
  std::uint64_t calls_seen_ = 0;
  TimePoint looked_;   // when the deadlines were last checked
  bool busy_ = false;  // the last round left work to do
  std::atomic<bool> stopping_{false};
  const std::optional<transport::SharedMail> shared_;
  std::thread thread_;  // if the mail is not shared
};

}  // namespace peal::native
