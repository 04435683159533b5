// The driver's end of the messages with its workers: serves the job's store, reads the workers'
// requests, and stores the answers (rendezvous/elastic_protocol.h). Called by driver.cpp.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "peal/base/error.h"
#include "peal/base/guarded.h"
#include "peal/config/config.h"
#include "peal/launch/elastic/elastic_options.h"
#include "peal/net/address.h"
#include "peal/rendezvous/elastic_protocol.h"
#include "peal/store/store.h"
#include "peal/store/tcp_store_server.h"
#include "peal/system/fd.h"

namespace peal::launch::elastic {

/// Threads: used by one; has two of its own, so create it after the Guard.
class Mailroom final {
 public:
  /// Serves at a free port of 127.0.0.1. If hosts may be other machines, also serves at the
  /// addresses that ranks would publish (rendezvous/interfaces.h). `config`: as the workers read
  /// it. Errors: resource, usage.
  Mailroom(const Config& config, const std::string& job, HostsAre hosts_are);
  ~Mailroom();
  Mailroom(const Mailroom&) = delete;
  Mailroom& operator=(const Mailroom&) = delete;

  /// For PEAL_ELASTIC_DRIVER of workers on this machine.
  std::string address() const { return addresses_.front().to_string(); }
  /// The same on another machine: the addresses to try, in this order, separated by commas.
  /// `launcher`: the address of this machine as the other machine sees it; empty: not known.
  std::string addresses_for(const std::string& launcher) const;

  /// Readable when there are requests.
  int news() const { return news_.get(); }
  std::vector<rendezvous::ElasticRequest> take_requests();

  /// Errors of these: timeout, peer_lost (the server's thread has ended).
  void answer(int worker, std::int64_t number, const rendezvous::ElasticAnswer& answer);
  void tell_changes(int round, rendezvous::HostChanges changes);
  /// As rendezvous::fail_meeting, for the meeting of a round.
  void fail_meeting(int round, const Error& error);

 private:
  std::vector<Fd> listen(HostsAre hosts_are);
  void read_requests();

  const Config config_;
  const net::ProofContext proof_;
  std::vector<net::Address> addresses_;
  store::TcpStoreServer server_;
  std::shared_ptr<store::Store> store_;
  Fd news_;  // an eventfd
  Guarded<std::vector<rendezvous::ElasticRequest>> requests_;
  std::thread reader_;
};

}  // namespace peal::launch::elastic
