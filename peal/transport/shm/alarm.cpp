#include "peal/transport/shm/alarm.h"

#include <algorithm>

#include "peal/net/socket.h"
#include "peal/transport/liveness/presence.h"

namespace peal::transport {

void Alarm::watch(const std::shared_ptr<PeerProcess>& process) {
  watched_.with([&](auto& watched) {
    std::erase_if(watched, [](const auto& one) { return one.expired(); });
    watched.push_back(process);
  });
  event_->ring();  // a sleeping thread does not watch the process yet
}

void Alarm::list_processes() {
  processes_.clear();
  entries_.clear();
  entries_.push_back({event_->fd(), POLLIN, 0});
  watched_.with([&](const auto& watched) {
    for (const auto& one : watched) {
      auto process = one.lock();
      if (!process) continue;
      entries_.push_back({process->sign(), kProcessEnds, 0});
      processes_.push_back(std::move(process));
    }
  });
}

bool Alarm::wait(Deadline deadline) {
  list_processes();
  const bool is_woken = net::poll_until(entries_, deadline);
  if (entries_[0].revents != 0) event_->reset_count();
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (entries_[i + 1].revents == 0) continue;
    processes_[i]->note_end();
    watched_.with([&](auto& watched) {
      std::erase_if(watched, [&](const auto& one) { return one.lock() == processes_[i]; });
    });
  }
  processes_.clear();  // so that their owners can end them
  return is_woken;
}

}  // namespace peal::transport
