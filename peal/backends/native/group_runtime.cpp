#include "peal/backends/native/group_runtime.h"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "peal/backends/native/core_share.h"
#include "peal/system/cpus.h"
#include "peal/transport/window/window.h"

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

GroupRuntime::GroupRuntime(const Options& options,
                           const observe::GroupRecorder& recorder,
                           std::unique_ptr<transport::Transport> transport,
                           QuickLock& quick_lock,
                           FairMutex& mutex)
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
      group_error_(std::make_shared<GroupError>([this] { on_group_error(); })) {
  messages_.emplace(parts_of_messages(options, mutex));
  collectives_.emplace(parts_of_collectives(options, quick_lock));
  judge_ = &*collectives_;
}

MessageLoop::Parts GroupRuntime::parts_of_messages(const Options& options, FairMutex& mutex) {
  return {.self = options.rank,
          .ranks = ranks_,
          .transport = *transport_,
          .group_error = *group_error_,
          .recorder = recorder_,
          .lost_peers = lost_peers_,
          .cores = cores_,
          .mutex = mutex,
          .interrupt = options.interrupt,
          .report_received =
              [this](Rank peer, const engine::ProgressReport& report) {
                progress_reports_.store(peer, report);
                if (CollectiveLoop* const loop = judge_.load()) loop->check_progress_reports();
              },
          .eager_bound = options.eager_bound};
}

CollectiveLoop::Parts GroupRuntime::parts_of_collectives(const Options& options,
                                                         QuickLock& quick_lock) {
  return {.quick_lock = quick_lock,
          .group = options.group,
          .self = options.rank,
          .ranks = ranks_,
          .transport = *transport_,
          .planner = planner_,
          .group_error = *group_error_,
          .recorder = recorder_,
          .lost_peers = lost_peers_,
          .stage = options.config.stage,
          .cores = cores_,
          .cpus = cpus_,
          .progress_reports = progress_reports_,
          .interrupt = options.interrupt,
          .departure = [this](Rank peer) { return messages_->departure(peer); },
          .send_progress_report =
              [this](std::span<const Rank> peers, const engine::ProgressReport& report) {
                messages_->send_progress_report(peers, report);
              }};
}

void GroupRuntime::on_group_error() {
  if (!stopping_) recorder_.failed(group_error_->cause());
  transport_->data().interrupt();
  transport_->mail().interrupt();
  if (transport_->window() != nullptr) transport_->window()->wake_all();
}

void GroupRuntime::stop(const Error& cause) {
  stopping_ = true;   // stopping is not a failure
  messages_->stop();  // before the group error is set, so that peers do not get it
  group_error_->set(cause);
  collectives_->stop();
  messages_->afterwards()->close();  // its tasks may wait for all of the above
}

}  // namespace peal::native
