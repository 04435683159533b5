// Drives a mailbox: on the thread of whoever sends or receives while that pays, and on a thread of
// its own that sleeps while nothing moves. It is also the one that learns of lost peers.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "peal/backends/native/patience.h"
#include "peal/base/guarded.h"
#include "peal/engine/mailbox.h"
#include "peal/engine/verdict.h"
#include "peal/group/backend.h"

namespace peal::native {

/// Threads: any number at once, but `leave` and `stop` from one at a time.
class MessageLoop {
 public:
  MessageLoop(
      Rank self, int ranks, transport::Transport& transport, engine::Verdict& verdict, Cores cores);
  ~MessageLoop();

  /// Posts all sends and receives. Throws the verdict if it is reached.
  std::vector<engine::TicketPtr> start(std::span<const Request> requests, Timeout timeout);
  /// Posts one and sees it through. Returns who was at the other end.
  Rank run(const Request& request, Timeout timeout);

  /// How the peer has left; nothing while it has not said farewell.
  std::optional<Departure> departure(Rank peer) {
    return mailbox_.with([&](const engine::Mailbox& mailbox) { return mailbox.departure(peer); });
  }

  /// Reaches the verdict `cause`; the peers are told `to_peers` instead. After another verdict it
  /// does nothing.
  void give_up(const Error& cause, const Error& to_peers);
  /// Says farewell (before it the verdict, if it is reached), waits until the deadline for what is
  /// to be sent, and stops.
  void leave(Departure departure, Deadline deadline);
  /// Ends the loop's thread, without a farewell, and what is open. A second time it does nothing.
  void stop();

 private:
  void loop();
  /// Returns whether anything moved, and when to look again at the latest.
  bool round(engine::Mailbox& mailbox, TimePoint& next);
  bool pass_on_verdict(engine::Mailbox& mailbox);
  void check_deadlines(engine::Mailbox& mailbox, TimePoint& next);
  void lost(Rank peer);

  Rank self_;
  transport::Transport& transport_;
  engine::Verdict& verdict_;
  Cores cores_;
  Guarded<engine::Mailbox> mailbox_;
  std::vector<transport::Interest> interests_;  // of the loop's thread
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace peal::native
