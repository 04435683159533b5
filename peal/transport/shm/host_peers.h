// What the groups of one process share about the other processes of its host, so that another group
// costs little: an alarm, the thread that sleeps on it, and for each peer process the descriptor
// that shows its end and the event that wakes it. Each rank has one, made by its connector
// (init/connector.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "peal/base/guarded.h"
#include "peal/transport/liveness/peer_process.h"
#include "peal/transport/shm/alarm.h"
#include "peal/transport/shm/mail_thread.h"

namespace peal::transport {

/// What this process has received from a peer process.
struct HostPeer {
  std::shared_ptr<PeerProcess> process;
  std::shared_ptr<Event> alarm;  // of the peer
};

/// Threads: any number at once.
class HostPeers {
 public:
  /// Errors: resource.
  HostPeers();

  /// A random number, by which peers tell this process from others.
  std::uint64_t number() const { return number_; }
  Alarm& alarm() { return mail_thread_.alarm(); }
  MailThread& mail_thread() { return mail_thread_; }

  /// Returns the peer that is known by this number if its process still lives, else `received`. The
  /// alarm watches the process of the peer.
  HostPeer meet(std::uint64_t number, HostPeer received);

 private:
  struct Known {
    std::weak_ptr<PeerProcess> process;
    std::weak_ptr<Event> alarm;
  };

  std::uint64_t number_;
  MailThread mail_thread_;
  Guarded<std::map<std::uint64_t, Known>> known_;
};

}  // namespace peal::transport
