#include "peal/backends/native/engine.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "peal/backends/native/core_share.h"
#include "peal/base/cpus.h"
#include "peal/transport/window.h"

namespace peal::native {
namespace {

Cores cores_for(const transport::Transport& transport) {
  return transport.ranks_on_host() <= transport.cpus_on_host() ? Cores::kOwn : Cores::kShared;
}

int cpus_for(const transport::Transport& transport) {
  const int own = cpus_at_once(std::array{std::int64_t{::getpid()}});
  return cpus_of_rank(own, transport.cpus_on_host(), transport.ranks_on_host());
}

}  // namespace

Engine::Engine(const Options& options,
               const observe::GroupRecorder& recorder,
               std::unique_ptr<transport::Transport> transport,
               Gate& gate,
               Door& door)
    : transport_(std::move(transport)),
      ranks_(static_cast<int>(options.world_ranks.size())),
      cores_(cores_for(*transport_)),
      cpus_(options.cpus ? *options.cpus : cpus_for(*transport_)),
      planner_(options.rank, options.config),
      recorder_(recorder),
      lost_peers_({.group = options.group,
                   .self = options.rank,
                   .world_ranks = options.world_ranks,
                   .transport = *transport_,
                   .ends = options.ends,
                   .what_was_thrown = options.what_was_thrown}),
      verdict_(std::make_shared<engine::Verdict>([this] { on_verdict(); })) {
  messages_.emplace(
      options.rank,
      ranks_,
      *transport_,
      *verdict_,
      recorder_,
      lost_peers_,
      cores_,
      door,
      options.interrupt,
      [this](Rank peer, const engine::Standing& standing) {
        standings_.heard(peer, standing);
        if (CollectiveLoop* const loop = judge_.load()) loop->look_at_standings();
      },
      options.eager_bound);
  collectives_.emplace(parts_of_collectives(options, gate));
  judge_ = &*collectives_;
}

CollectiveLoop::Parts Engine::parts_of_collectives(const Options& options, Gate& gate) {
  return {.gate = gate,
          .group = options.group,
          .self = options.rank,
          .ranks = ranks_,
          .transport = *transport_,
          .planner = planner_,
          .verdict = *verdict_,
          .recorder = recorder_,
          .lost_peers = lost_peers_,
          .stage = options.config.stage,
          .cores = cores_,
          .cpus = cpus_,
          .standings = standings_,
          .interrupt = options.interrupt,
          .departure = [this](Rank peer) { return messages_->departure(peer); },
          .tell_standing =
              [this](std::span<const Rank> peers, const engine::Standing& standing) {
                messages_->tell_standing(peers, standing);
              }};
}

void Engine::on_verdict() {
  if (!stopping_) recorder_.failed(verdict_->cause());
  transport_->data().interrupt();
  transport_->mail().interrupt();
  if (transport_->window() != nullptr) transport_->window()->wake_all();
}

void Engine::stop(const Error& cause) {
  stopping_ = true;   // that is no failure
  messages_->stop();  // before the verdict: the peers are not to hear of it
  verdict_->reach(cause);
  collectives_->stop();
  messages_->afterwards()->close();  // what it does may wait for any of those
}

}  // namespace peal::native
