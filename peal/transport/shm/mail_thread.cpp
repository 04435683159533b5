#include "peal/transport/shm/mail_thread.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <optional>

#include "peal/system/thread.h"

namespace peal::transport {
namespace {

/// The pause before the thread checks again after a failed sleep.
constexpr auto kPause = std::chrono::milliseconds(10);

}  // namespace

MailThread::~MailThread() {
  if (!owner_.is_current()) {
    leave_to_parent(std::move(thread_));
    return;
  }
  all_.with([](All& all) { all.stopping = true; });
  alarm_.event()->ring();
  if (thread_.joinable()) thread_.join();
}

void MailThread::add(RingChannel& channel, Member& member) {
  all_.with([&](All& all) {
    all.entries.push_back({channel, member});
    try {
      if (!thread_.joinable()) thread_ = start_thread([this] { run(); });
    } catch (...) {
      all.entries.pop_back();
      throw;
    }
  });
  alarm_.event()->ring();
}

void MailThread::remove(const Member& member) noexcept {
  const std::optional<Entries::iterator> entry =
      all_.with([&](All& all) -> std::optional<Entries::iterator> {
        const auto found = std::ranges::find_if(
            all.entries, [&](const Entry& one) { return &one.member == &member; });
        if (found == all.entries.end()) return std::nullopt;
        found->leaving = true;
        return found;
      });
  if (!entry) return;
  all_.wait(
      Deadline(TimePoint::max()),
      [&](const All& all) { return all.inside != *entry; },
      [&](All& all) { all.entries.erase(*entry); });
}

void MailThread::run() {
  auto channels = Channels::kMayBeReady;
  while (!is_stopping()) {
    const TimePoint next = check_all(channels);
    channels = wait_until(next);  // even if `next` has passed, because a peer may have rung
  }
}

bool MailThread::is_stopping() {
  return all_.with([](const All& all) { return all.stopping; });
}

/// Without memory or a working poll(2), the thread continues by polling.
MailThread::Channels MailThread::wait_until(TimePoint next) noexcept {
  try {
    return alarm_.wait(Deadline(next)) ? Channels::kMayBeReady : Channels::kIdle;
  } catch (const std::exception&) {
    std::this_thread::sleep_for(kPause);
    return Channels::kMayBeReady;
  }
}

void MailThread::run_round(Entry& entry) noexcept {
  entry.channel.end_sleep();
  interests_.clear();
  entry.due = entry.member.round(interests_);
  try {
    if (!entry.channel.announce_sleep(interests_)) entry.due = kAtOnce;
  } catch (const std::exception&) {  // out of memory
    entry.due = Clock::now() + kPause;
  }
}

/// The event's count was reset before, so data that a peer publishes after this check rings it
/// again. A ringer publishes before it rings, and may be stopped before it marks the sleep as rung.
/// So the thread checks each channel, and not only its doorbell.
TimePoint MailThread::check_all(Channels channels) {
  const TimePoint now = Clock::now();
  TimePoint next = TimePoint::max();
  const auto needs_round = [&](const Entry& entry) {
    return entry.due <= now || (channels == Channels::kMayBeReady && entry.channel.should_wake());
  };
  const auto go_on = [&](All& all) -> Entry* {
    auto at = all.entries.begin();
    if (all.inside != all.entries.end()) {
      next = std::min(next, all.inside->due);
      at = std::next(all.inside);
    }
    for (; at != all.entries.end(); ++at) {
      if (at->leaving) continue;
      if (needs_round(*at)) break;
      next = std::min(next, at->due);
    }
    all.inside = at;
    return at == all.entries.end() ? nullptr : &*at;
  };
  while (Entry* const entry = all_.update(go_on)) run_round(*entry);
  return next;
}

}  // namespace peal::transport
