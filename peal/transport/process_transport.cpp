#include "peal/transport/process_transport.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/system/cpus.h"
#include "peal/transport/faulty/wire.h"
#include "peal/transport/link/connect.h"
#include "peal/transport/link/hosts.h"
#include "peal/transport/link/linker.h"
#include "peal/transport/liveness/heartbeats.h"
#include "peal/transport/liveness/stopped_ranks.h"
#include "peal/transport/mixed/mixed_channel.h"
#include "peal/transport/shm/mail_thread.h"
#include "peal/transport/tcp/tcp_channel.h"
#include "peal/transport/window/window.h"

namespace peal::transport {
namespace {

class ProcessTransport final : public Transport {
 public:
  ProcessTransport(const ConnectOptions& options,
                   std::span<const Contact> contacts,
                   Connected connected)
      : group_(options.group),
        self_(options.rank),
        world_ranks_(options.world_ranks),
        contacts_(contacts.begin(), contacts.end()),
        hosts_(number_hosts(contacts)),
        near_(std::move(connected.near)),
        host_(std::move(connected.host)),
        faults_(options.faults) {
    for (const Contact& contact : contacts_) {
      const Contact& own = contacts_[static_cast<std::size_t>(self_)];
      if (machine_of(contact.host_id) != machine_of(own.host_id)) continue;
      processes_on_machine_.push_back(contact.pid);
    }
    Links& links = connected.links;
    for (auto& [key, stream] : links) stream = with_faults_of(key, std::move(stream));
    data_ = make_channel(ChannelKind::kData, take(links, LinkKind::kData));
    mail_ = make_channel(ChannelKind::kMail, take(links, LinkKind::kMail));
    if (host_ && (contacts.size() == 1 || ranks_per_host(contacts) > 1))
      window_ = host_->make_window();
    if (auto beats = take(links, LinkKind::kBeats); !beats.empty()) {
      heartbeats_.emplace(
          std::move(beats),
          options.heartbeat,
          [this](Rank rank) { lose_host_of(rank); },
          [stopped = stopped_neighbours(self_)]() mutable { return stopped.look(); });
    }
    if (!connected.listeners.empty()) {
      linker_.emplace(
          std::move(connected.plan), std::move(connected.listeners), events_of_linker());
    }
  }

  Channel& data() override { return *data_; }
  Channel& mail() override { return *mail_; }
  std::optional<SharedMail> shared_mail() override {
    if (near_mail_ == nullptr) return std::nullopt;
    return SharedMail{*near_mail_, host_->mail_thread()};
  }
  Window* window() override { return window_ ? &*window_ : nullptr; }

  void stop_linking() override {
    if (linker_) linker_->stop();
  }

  int ranks_on_host() const override { return static_cast<int>(processes_on_machine_.size()); }
  int cpus_on_host() const override { return cpus_at_once(processes_on_machine_); }

  std::string describe(Rank peer) const override {
    const auto index = static_cast<std::size_t>(peer);
    const Contact& contact = contacts_.at(index);
    return fmt::format("pid {} on {}, over {}",
                       contact.pid,
                       contact.hostname,
                       near_[index] ? "shm" : "tcp " + describe_link(peer));
  }

  std::string host(Rank peer) const override {
    return contacts_.at(static_cast<std::size_t>(peer)).hostname;
  }

  Presence presence(Rank peer) const override {
    if (near_[static_cast<std::size_t>(peer)]) return host_->presence(peer);
    if (!heartbeats_) return {};
    if (const Presence seen = heartbeats_->presence(peer); seen != Presence{}) return seen;
    for (const Rank other : ranks_beside(peer)) {
      const Presence seen = heartbeats_->presence(other);
      // if one rank of the host is unreachable, the whole host is
      if (seen.state == Presence::State::kUnreachable) return seen;
    }
    return {};
  }

 private:
  std::unique_ptr<Channel> make_channel(ChannelKind kind,
                                        std::map<Rank, std::unique_ptr<net::Stream>> connections) {
    const std::vector<Rank> far_ranks = ranks_not_near();
    if (far_ranks.empty()) {
      auto near = host_->make_channel(kind);
      if (kind == ChannelKind::kMail) near_mail_ = near.get();
      return near;
    }
    const LinkKind link = kind == ChannelKind::kData ? LinkKind::kData : LinkKind::kMail;
    auto far = std::make_unique<TcpChannel>(
        far_ranks,
        std::move(connections),
        TcpChannel::Events{
            .want =
                [this, link](Rank peer) {
                  if (linker_) linker_->want({peer, link});
                },
            .loss = [this](Rank peer, std::string_view what) { return broken_link(peer, what); }});
    (kind == ChannelKind::kData ? far_data_ : far_mail_) = far.get();
    if (!host_) return far;
    return std::make_unique<MixedChannel>(host_->make_channel(kind), std::move(far), near_);
  }

  std::vector<Rank> ranks_not_near() const {
    std::vector<Rank> ranks;
    for (std::size_t rank = 0; rank < near_.size(); ++rank) {
      if (!near_[rank]) ranks.push_back(static_cast<Rank>(rank));
    }
    return ranks;
  }

  /// Each end of a link injects the faults of its incoming bytes.
  std::unique_ptr<net::Stream> with_faults_of(const LinkKey& key,
                                              std::unique_ptr<net::Stream> stream) const {
    if (key.kind != LinkKind::kData && key.kind != LinkKind::kMail) return stream;
    const auto channel = key.kind == LinkKind::kData ? ChannelKind::kData : ChannelKind::kMail;
    const DirectionFaults faults = faults_of(faults_, key.peer, self_, channel);
    return faults == DirectionFaults() ? std::move(stream) : with_faults(std::move(stream), faults);
  }

  Linker::Events events_of_linker() {
    return {.made =
                [this](const LinkKey& key, std::unique_ptr<net::Stream> stream) {
                  TcpChannel& far = key.kind == LinkKind::kData ? *far_data_ : *far_mail_;
                  far.add(key.peer, with_faults_of(key, std::move(stream)));
                },
            .refused =
                [this](Rank peer) {
                  far_mail_->refuse(peer);
                  far_data_->refuse(peer);
                },
            .failed =
                [this](Rank peer, const Error& error) {
                  far_mail_->fail(peer, error);
                  far_data_->fail(peer, error);
                }};
  }

  std::string describe_link(Rank peer) const {
    std::string link = far_data_->describe(peer);
    if (!link.empty()) return link;
    const std::string mail = far_mail_->describe(peer);
    return mail.empty() ? "(no connection was needed so far)" : mail;
  }

  Error broken_link(Rank peer, std::string_view what) const {
    const Contact& contact = contacts_.at(static_cast<std::size_t>(peer));
    return Error(
        ErrorKind::kPeerLost,
        fmt::format(
            "rank {} of the group {} lost {}: {}", self_, group_, name_of(peer, contact), what),
        {.rank = world_ranks_.empty() ? peer : world_ranks_.at(static_cast<std::size_t>(peer)),
         .host = contact.hostname,
         .cause = ErrorCause::kUnreachable});
  }

  StoppedRanks stopped_neighbours(Rank self) const {
    std::vector<Rank> neighbours;
    for (std::size_t rank = 0; host_ && rank < near_.size(); ++rank) {
      if (near_[rank] && static_cast<Rank>(rank) != self) {
        neighbours.push_back(static_cast<Rank>(rank));
      }
    }
    return {neighbours, [this](Rank rank) { return host_->presence(rank); }};
  }

  /// All ranks of its host, itself included.
  std::vector<Rank> ranks_beside(Rank rank) const {
    std::vector<Rank> ranks;
    const int host = hosts_[static_cast<std::size_t>(rank)];
    for (std::size_t other = 0; other < hosts_.size(); ++other) {
      if (hosts_[other] == host) ranks.push_back(static_cast<Rank>(other));
    }
    return ranks;
  }

  /// Cuts off the streams to all ranks of the host. Threads that use these streams, or sleep on
  /// them, see the end.
  void lose_host_of(Rank rank) {
    for (const Rank other : ranks_beside(rank)) {
      far_data_->cut_off(other);
      far_mail_->cut_off(other);
    }
  }

  std::string group_;
  Rank self_;
  std::vector<Rank> world_ranks_;
  std::vector<Contact> contacts_;
  std::vector<int> hosts_;  // of each rank
  std::vector<std::int64_t> processes_on_machine_;
  std::vector<bool> near_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<Channel> data_;
  std::unique_ptr<Channel> mail_;
  TcpChannel* far_data_ = nullptr;
  TcpChannel* far_mail_ = nullptr;
  RingChannel* near_mail_ = nullptr;  // if all ranks are on this host
  std::optional<Window> window_;
  std::vector<LinkFault> faults_;
  // Destroyed before the channels, which these two change:
  std::optional<Heartbeats> heartbeats_;
  std::optional<Linker> linker_;
};

}  // namespace

std::unique_ptr<Transport> make_process_transport(const ConnectOptions& options,
                                                  std::span<const Contact> contacts,
                                                  Connected connected) {
  return std::make_unique<ProcessTransport>(options, contacts, std::move(connected));
}

}  // namespace peal::transport
