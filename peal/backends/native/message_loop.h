// Drives a mailbox: on the thread of whoever sends or receives while that pays, and on a thread of
// its own that sleeps while nothing moves. It is also the one that learns of lost peers.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "peal/backends/native/patience.h"
#include "peal/engine/mailbox.h"
#include "peal/engine/verdict.h"
#include "peal/group/backend.h"

namespace peal::native {

/// Threads: any number at once.
class MessageLoop {
 public:
  MessageLoop(
      Rank self, int ranks, transport::Transport& transport, engine::Verdict& verdict, Cores cores);
  ~MessageLoop();
  /// Ends the loop's thread, without a farewell.
  void stop();

  /// Posts all sends and receives. Throws the verdict if it is reached.
  std::vector<engine::TicketPtr> start(std::span<const Request> requests, Timeout timeout);
  /// Posts one and sees it through. Returns who was at the other end.
  Rank run(const Request& request, Timeout timeout);

  bool has_left(Rank peer) const { return mailbox_.has_left(peer); }

  /// Says farewell and hands over what is to be sent until the deadline, then stops.
  void leave(Deadline deadline);

 private:
  void loop();
  /// One round under the lock; returns whether anything moved, and when to look again at the
  /// latest.
  bool round(TimePoint& next);
  bool pass_on_verdict();
  void check_deadlines(TimePoint& next);
  void post(const engine::TicketPtr& ticket, const Request& request);
  void lost(Rank peer);

  Rank self_;
  transport::Transport& transport_;
  engine::Verdict& verdict_;
  Cores cores_;

  std::mutex mutex_;
  engine::Mailbox mailbox_;                     // under mutex_, but for has_left
  bool told_ = false;                           // the peers of the verdict; under mutex_
  std::vector<transport::Interest> interests_;  // of the loop's thread
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace peal::native
