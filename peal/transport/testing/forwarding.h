// Base classes for a test's channel or transport that changes a part of another one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "peal/transport/transport.h"

namespace peal::transport {

/// Forwards every call to `inner`, which must outlive this channel.
class ForwardingChannel : public Channel {
 public:
  explicit ForwardingChannel(Channel& inner) : inner_(inner) {}

  Transfer try_send(Rank peer, std::span<const ConstPiece> pieces) override {
    return inner_.try_send(peer, pieces);
  }
  bool try_flush(Rank peer) override { return inner_.try_flush(peer); }
  Transfer try_receive(Rank peer, std::span<std::byte> into) override {
    return inner_.try_receive(peer, into);
  }
  LinkState link_state(Rank peer) const override { return inner_.link_state(peer); }
  Bytes unacknowledged(Rank peer) const override { return inner_.unacknowledged(peer); }
  void wait(std::span<const Interest> interests, Deadline deadline) override {
    inner_.wait(interests, deadline);
  }
  void interrupt() noexcept override { inner_.interrupt(); }

 private:
  Channel& inner_;
};

/// Forwards every call to the transport that it owns.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  Channel& data() override { return inner_->data(); }
  Channel& mail() override { return inner_->mail(); }
  std::optional<SharedMail> shared_mail() override { return inner_->shared_mail(); }
  Window* window() override { return inner_->window(); }
  void stop_linking() override { inner_->stop_linking(); }
  int ranks_on_host() const override { return inner_->ranks_on_host(); }
  int cpus_on_host() const override { return inner_->cpus_on_host(); }
  std::string describe(Rank peer) const override { return inner_->describe(peer); }
  std::string host(Rank peer) const override { return inner_->host(peer); }
  Presence presence(Rank peer) const override { return inner_->presence(peer); }

 protected:
  Transport& inner() { return *inner_; }

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace peal::transport
