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
#include "peal/rendezvous/elastic_protocol.h"
#include "peal/store/store.h"
#include "peal/store/tcp_store_server.h"
#include "peal/system/fd.h"

namespace peal::launch::elastic {

/// Threads: used by one; has two of its own, so create it after the Guard.
class Mailroom final {
 public:
  /// Serves at a free port of 127.0.0.1. `config`: as the workers read it. Errors: resource, usage.
  Mailroom(const Config& config, const std::string& job);
  ~Mailroom();
  Mailroom(const Mailroom&) = delete;
  Mailroom& operator=(const Mailroom&) = delete;

  /// For PEAL_ELASTIC_DRIVER.
  std::string address() const { return server_.address().to_string(); }

  /// Readable when there are requests.
  int news() const { return news_.get(); }
  std::vector<rendezvous::ElasticRequest> take_requests();

  /// Errors of these: timeout, peer_lost (the server's thread has ended).
  void answer(int worker, std::int64_t number, const rendezvous::ElasticAnswer& answer);
  void tell_changes(int round, rendezvous::HostChanges changes);
  /// As rendezvous::fail_meeting, for the meeting of a round.
  void fail_meeting(int round, const Error& error);

 private:
  void read_requests();

  const Config config_;
  const net::ProofContext proof_;
  store::TcpStoreServer server_;
  std::shared_ptr<store::Store> store_;
  Fd news_;  // an eventfd
  Guarded<std::vector<rendezvous::ElasticRequest>> requests_;
  std::thread reader_;
};

}  // namespace peal::launch::elastic
