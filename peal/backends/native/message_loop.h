// Drives a mailbox. A thread that sends or receives drives it while polling pays. Otherwise the
// loop's thread drives it, and sleeps while nothing moves. Groups whose ranks all share memory have
// one such thread for the whole process (transport/rounds.h); every other group has its own. The
// loop also detects lost peers.
//
// While calls attend to the mailbox, the loop's thread keeps out: it does not watch the streams,
// since peers would ring its bell for each message then. It naps, does a round unless a call is
// polling, and looks again whether there are still calls. So what comes uncalled for is moved up to
// two naps late; once a large message is under way, the loop stays.
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

#include "peal/backends/native/attended.h"
#include "peal/backends/native/interruptible.h"
#include "peal/backends/native/lost_peer.h"
#include "peal/backends/native/patience.h"
#include "peal/base/task_thread.h"
#include "peal/engine/mailbox.h"
#include "peal/engine/verdict.h"
#include "peal/group/backend.h"
#include "peal/observe/group_recorder.h"
#include "peal/transport/rounds.h"

namespace peal::native {

/// Threads: any number at once, but `leave` and `stop` from one at a time.
class MessageLoop final : private transport::Rounds::Member {
 public:
  /// A rank that waits for this one says where it stands. Called from within other methods of this
  /// class, with the door passed.
  using StandingHeard = std::function<void(Rank peer, const engine::Standing& standing)>;

  /// The door, the recorder and `lost_peers` outlive the loop. `eager_bound` is the bound of the
  /// mailbox.
  MessageLoop(Rank self,
              int ranks,
              transport::Transport& transport,
              engine::Verdict& verdict,
              const observe::GroupRecorder& recorder,
              const LostPeers& lost_peers,
              Cores cores,
              Door& door,
              Interrupt interrupt,
              StandingHeard standing_heard,
              std::optional<Bytes> eager_bound = std::nullopt);
  ~MessageLoop();

  /// Posts all sends and receives. Throws the verdict if it is reached.
  std::vector<engine::TicketPtr> start(std::span<const Request> requests, Timeout timeout);
  /// Posts one and sees it through. Returns who was at the other end.
  Rank run(const Request& request, Timeout timeout) {
    door_.lock();
    return run_inside(request, timeout);
  }
  /// The same by who has passed the door, and leaves through it.
  Rank run_inside(const Request& request, Timeout timeout);

  /// Does what is to be done when messages have ended. Closed when the verdict is reached, for
  /// which that may wait.
  const std::shared_ptr<TaskThread>& afterwards() const { return afterwards_; }

  /// How the peer has left; nothing while it has not said farewell.
  std::optional<Departure> departure(Rank peer) {
    return mailbox_.with([&](const engine::Mailbox& mailbox) { return mailbox.departure(peer); });
  }

  /// Tells those ranks where this one stands, that waits for them.
  void tell_standing(std::span<const Rank> peers, const engine::Standing& standing);

  /// Reaches the verdict `cause`; the peers are told `to_peers` instead. After another verdict it
  /// does nothing.
  void give_up(const Error& cause, const Error& to_peers);
  /// Says farewell (before it the verdict, if it is reached), waits until the deadline for what is
  /// to be sent, and stops. Returns by what it was interrupted, if it was.
  std::optional<Error> leave(Departure departure, Deadline deadline, const Interrupt& interrupt);
  /// Ends the loop's thread, without a farewell, and what is open, and waits until nobody waits for
  /// that. A second time it does nothing.
  void stop();

 private:
  using Inside = Attended<engine::Mailbox>::Inside;

  void post(engine::Mailbox& mailbox, const engine::TicketPtr& ticket, const Request& request);
  /// A small message that can leave now needs no ticket.
  bool send_at_once(engine::Mailbox& mailbox, const Request& request);
  /// Polls until the ticket, of a message from or to `peer`, has ended, or it is time to leave that
  /// to the loop.
  void attend(Inside& mailbox, Rank peer, engine::Ticket& ticket);
  /// For a call that leaves something to the loop.
  void call_loop();

  /// Runs on the loop's own thread.
  void loop();
  /// A round, or a nap while calls attend to the mailbox.
  TimePoint round(std::vector<transport::Interest>& interests) noexcept override;
  TimePoint try_round(std::vector<transport::Interest>& interests);
  /// Whether calls have seen to the mailbox since the loop last asked.
  bool is_attended();
  /// Returns whether anything moved. Adds the events to wait for to `interests`, and lowers `next`
  /// to the time of the next round.
  bool move(engine::Mailbox& mailbox, std::vector<transport::Interest>& interests, TimePoint& next);
  bool pass_on_verdict(engine::Mailbox& mailbox);
  void check_deadlines(engine::Mailbox& mailbox, TimePoint& next);
  std::string whereabouts(Rank peer) const;
  void lost(Rank peer);
  void left(Rank peer, Departure departure, const Error& error);
  /// Reaches the verdict that `conclude` returns, on a thread of its own. `conclude` waits up to
  /// half a second for news of the peer. Calls and other groups must not wait for that.
  void reach_later(std::function<Error()> conclude);

  Rank self_;
  int ranks_;
  transport::Transport& transport_;
  engine::Verdict& verdict_;
  const observe::GroupRecorder& recorder_;
  const LostPeers& lost_peers_;
  Cores cores_;
  Door& door_;  // to the mailbox
  const Interrupt interrupt_;
  Attended<engine::Mailbox> mailbox_;
  const std::shared_ptr<TaskThread> afterwards_ = std::make_shared<TaskThread>();
  // Written by who is inside:
  std::atomic<bool> attended_ = false;    // a call polls
  std::atomic<std::uint64_t> calls_ = 0;  // that have polled
  int waiting_ = 0;                       // calls that wait until somebody else ends their tickets

  std::atomic<bool> called_ = false;  // somebody leaves something to the loop
  TaskThread conclusions_;
  // Of the loop's thread:
  bool naps_ = false;
  std::uint64_t calls_seen_ = 0;
  TimePoint looked_;   // when it last looked at the deadlines
  bool busy_ = false;  // its last round left something to do
  std::atomic<bool> stopping_{false};
  const std::optional<transport::SharedMail> shared_;
  std::thread thread_;  // if the mail is not shared
};

}  // namespace peal::native
