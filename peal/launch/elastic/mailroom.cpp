#include "peal/launch/elastic/mailroom.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/net/socket.h"
#include "peal/rendezvous/fail_meeting.h"
#include "peal/rendezvous/interfaces.h"
#include "peal/store/prefix_store.h"
#include "peal/store/tcp_store.h"
#include "peal/system/thread.h"

namespace peal::launch::elastic {
namespace {

using rendezvous::ElasticRequest;

constexpr Timeout kToAnswer = std::chrono::seconds(30);
/// The driver's own request, which ends its reader.
constexpr int kDriver = -1;

/// "10.0.0.1" of 10.0.0.1:4711, "fd00::1" of [fd00::1]:4711
std::string host_of(const net::Address& address) {
  const std::string text = address.to_string();
  const std::string host = text.substr(0, text.rfind(':'));
  return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
}

/// The addresses of this machine that others can reach. Without a network there are none, and only
/// hosts of this machine can be used.
std::vector<net::Address> own_addresses(const Config& config) {
  using rendezvous::Interface;
  const std::vector<Interface> interfaces = rendezvous::own_interfaces();
  const bool has_network = std::ranges::any_of(
      interfaces, [](const Interface& each) { return !each.address.is_loopback(); });
  if (!has_network) return {};
  return rendezvous::choose_addresses(
      interfaces, config.interfaces, rendezvous::Reach::kOtherHosts);
}

std::shared_ptr<store::Store> connect(const net::Address& server, const net::ProofContext& proof) {
  return store::connect_tcp_store(
      {server}, proof, kToAnswer, Deadline::after(kToAnswer), "the driver's own store");
}

}  // namespace

Mailroom::Mailroom(const Config& config, const std::string& job, HostsAre hosts_are)
    : config_(config),
      proof_(rendezvous::elastic_proof_context(config, job)),
      server_(listen(hosts_are), proof_),
      store_(connect(server_.address(), proof_)),
      news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!news_) throw system_error("cannot make an eventfd for the driver", errno);
  reader_ = start_thread([this] { read_requests(); });
}

Mailroom::~Mailroom() {
  try {
    rendezvous::post(*store_, {kDriver, 0, ElasticRequest::Kind::kStop});
  } catch (const std::exception&) {
    // The server's thread has ended, so the reader ends too.
  }
  reader_.join();
}

std::vector<Fd> Mailroom::listen(HostsAre hosts_are) {
  std::vector<net::Address> wanted = {net::Address::parse("127.0.0.1:0")};
  if (hosts_are == HostsAre::kAnyMachine) {
    for (const net::Address& address : own_addresses(config_)) wanted.push_back(address);
  }
  std::vector<Fd> listeners;
  for (const net::Address& address : wanted) {
    listeners.push_back(net::listen_on(address));
    addresses_.push_back(net::local_address(listeners.back().get()));
  }
  return listeners;
}

std::string Mailroom::addresses_for(const std::string& launcher) const {
  std::vector<std::string> texts;
  for (const net::Address& address : addresses_) {
    if (host_of(address) == launcher) {
      texts.insert(texts.begin(), address.to_string());
    } else if (!address.is_loopback()) {
      texts.push_back(address.to_string());
    }
  }
  return texts.empty() ? address() : fmt::format("{}", fmt::join(texts, ","));
}

void Mailroom::read_requests() {
  constexpr Timeout kLong = std::chrono::hours(1);
  for (std::int64_t index = 0;;) {
    try {
      const std::string text = store_->get(rendezvous::request_key(index), Deadline::after(kLong));
      store_->set(rendezvous::kNextRequestKey, fmt::format("{}", ++index));
      const ElasticRequest request = ElasticRequest::decode(text);
      if (request.kind == ElasticRequest::Kind::kStop && request.worker == kDriver) return;
      requests_.with([&](auto& requests) { requests.push_back(request); });
      ::eventfd_write(news_.get(), 1);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kPeerLost) return;
    }
  }
}

std::vector<ElasticRequest> Mailroom::take_requests() {
  eventfd_t ignored = 0;
  ::eventfd_read(news_.get(), &ignored);
  return requests_.with([](auto& requests) { return std::exchange(requests, {}); });
}

void Mailroom::answer(int worker, std::int64_t number, const rendezvous::ElasticAnswer& answer) {
  store_->set(rendezvous::answer_key(worker, number), answer.encode());
}

void Mailroom::tell_changes(int round, rendezvous::HostChanges changes) {
  store_->set(rendezvous::changes_key(round), rendezvous::encode(changes));
}

void Mailroom::fail_meeting(int round, const Error& error) {
  rendezvous::fail_meeting(store::make_prefix_store(store_, rendezvous::round_prefix(round)),
                           config_.secret,
                           config_.timeout,
                           error);
}

}  // namespace peal::launch::elastic
