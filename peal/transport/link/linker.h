// Makes links after a group has connected, when a rank first needs them. A thread of the group
// accepts the links of other ranks and dials for this rank, also while the rank computes or is
// inside an operation. process_transport.cpp makes one for each group that leaves links for later.
//
// Either end may need a link first, and both may need it at the same time. So both may dial. If
// both do, the link of the lower rank counts: a rank that dials itself tells a higher rank to try
// later, and accepts a lower rank. The mail link of two ranks is made before their data link, so
// that a rank that loses the data link can learn by mail how its peer has left.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/net/stream.h"
#include "peal/system/fd.h"
#include "peal/system/per_process.h"
#include "peal/transport/link/acceptor.h"
#include "peal/transport/link/dial.h"
#include "peal/transport/link/links.h"

namespace peal::transport {

/// Threads: any number at once.
class Linker final {
 public:
  /// Called on the linker's thread.
  struct Events {
    std::function<void(const LinkKey&, std::unique_ptr<net::Stream>)> made;
    /// The peer has closed its listeners: it has left the group, or has ended. Called some time
    /// after this is known, so that the news of how it ended, which travels over other links, comes
    /// first.
    std::function<void(Rank)> refused;
    /// The link can never be made, for another reason.
    std::function<void(Rank, const Error&)> failed;
  };

  /// Makes the links of `plan` that are for later. Takes the listeners of the plan.
  /// Errors: resource.
  Linker(LinkPlan plan, std::vector<Fd> listeners, Events events);
  ~Linker();
  Linker(const Linker&) = delete;
  Linker& operator=(const Linker&) = delete;

  /// Begins to make the link, unless it is made or this rank dials already. Retries until it is
  /// made or `refused` or `failed` is called.
  void want(const LinkKey& key);

  /// Closes the listeners and stops the thread: later dials of other ranks are refused, and no
  /// event is called any more. A second call does nothing. Threads: one at a time.
  void stop();

 private:
  /// An outgoing link.
  struct Dialling {
    Dial dial;
    std::optional<TimePoint> refused_at = {};  // since then the peer does not listen
  };

  void run();
  /// Waits for something to do, and does it. Returns whether to go on.
  bool turn();
  TimePoint add_entries();
  void begin_dials();
  void advance_dials();
  /// Returns whether the dial is over.
  bool advance(const LinkKey& key, Dialling& dialling, TimePoint now);
  Answer decide(const LinkKey& key) const;
  /// Whether the link was not made at the start of the group.
  bool is_for_later(const LinkKey& key) const;
  void take(const LinkKey& key, std::unique_ptr<net::Stream> stream);
  void add(const LinkKey& key, std::unique_ptr<net::Stream> stream);
  void give_up(Rank peer, const Error& error);

  const OwnerProcess owner_;
  const Events events_;
  LinkPlan plan_;
  std::vector<Fd> listeners_;
  Fd wake_;

  struct Wanted {
    std::vector<LinkKey> keys;
    bool stops = false;
  };
  Guarded<Wanted> wanted_;

  // Used by the thread.
  std::optional<Acceptor> acceptor_;
  std::set<LinkKey> open_;  // wanted, and not dialled yet
  std::set<LinkKey> made_;
  std::set<Rank> given_up_;  // `refused` or `failed` was called
  std::map<LinkKey, Dialling> dials_;
  std::vector<pollfd> entries_;

  std::thread thread_;
};

}  // namespace peal::transport
