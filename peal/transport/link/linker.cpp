#include "peal/transport/link/linker.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

#include "peal/net/socket.h"
#include "peal/system/thread.h"

namespace peal::transport {
namespace {

/// How long the news of how a peer ended may take to come over other links. Every rank notices a
/// dead rank within a second.
constexpr auto kNewsTravel = std::chrono::milliseconds(600);

std::size_t count_later_links(const LinkPlan& plan) {
  std::size_t count = 0;
  for (const auto& [rank, peer] : plan.peers) count += peer.later_kinds.size();
  return count;
}

}  // namespace

Linker::Linker(LinkPlan plan, std::vector<Fd> listeners, Events events)
    : events_(std::move(events)),
      plan_(std::move(plan)),
      listeners_(std::move(listeners)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw system_error("cannot make an eventfd for new links", errno);
  plan_.listeners.clear();
  for (const Fd& listener : listeners_) plan_.listeners.push_back(listener.get());
  acceptor_.emplace(
      plan_,
      count_later_links(plan_),
      Acceptor::Owner{
          .decide = [this](const LinkKey& key) { return decide(key); },
          .take = [this](const LinkKey& key,
                         std::unique_ptr<net::Stream> stream) { take(key, std::move(stream)); }});
  thread_ = start_thread([this] { run(); });
}

Linker::~Linker() { stop(); }

void Linker::stop() {
  if (!owner_.is_current()) {
    if (thread_.joinable()) leave_to_parent(std::move(thread_));
    return;
  }
  if (!thread_.joinable()) return;
  wanted_.with([](Wanted& wanted) { wanted.stops = true; });
  ::eventfd_write(wake_.get(), 1);
  thread_.join();
  acceptor_.reset();
  dials_.clear();
  listeners_.clear();
}

void Linker::want(const LinkKey& key) {
  wanted_.with([&](Wanted& wanted) { wanted.keys.push_back(key); });
  ::eventfd_write(wake_.get(), 1);
}

void Linker::run() {
  try {
    while (turn()) {
    }
  } catch (const std::exception&) {  // out of memory
    const Error error = current_error("the thread that makes links");
    for (const auto& [rank, peer] : plan_.peers) {
      if (!peer.later_kinds.empty()) give_up(rank, error);
    }
  }
}

bool Linker::turn() {
  entries_.clear();
  entries_.push_back({wake_.get(), POLLIN, 0});
  const TimePoint due = add_entries();
  net::poll_until(entries_, Deadline(due));
  std::uint64_t count = 0;
  if (entries_[0].revents != 0) ::eventfd_read(wake_.get(), &count);
  const bool stops = wanted_.with([&](Wanted& wanted) {
    open_.insert(wanted.keys.begin(), wanted.keys.end());
    wanted.keys.clear();
    return wanted.stops;
  });
  if (stops) return false;
  acceptor_->advance();
  begin_dials();
  advance_dials();
  begin_dials();  // a mail link was made just now: its data link is next
  return true;
}

/// Returns when to go on if nothing happens.
TimePoint Linker::add_entries() {
  acceptor_->add_entries(entries_);
  TimePoint due = acceptor_->due();
  for (const auto& [key, dialling] : dials_) {
    if (dialling.refused_at) {
      due = std::min(due, *dialling.refused_at + kNewsTravel);
    } else {
      entries_.push_back(dialling.dial.entry());
      due = std::min(due, dialling.dial.due());
    }
  }
  return due;
}

void Linker::begin_dials() {
  std::set<LinkKey> wait_for_mail;
  for (const LinkKey& key : open_) {
    if (given_up_.contains(key.peer) || made_.contains(key)) continue;
    const LinkKey mail{key.peer, LinkKind::kMail};
    const bool waits = key != mail && is_for_later(mail) && !made_.contains(mail);
    if (waits) wait_for_mail.insert(key);
    const LinkKey& next = waits ? mail : key;
    if (!dials_.contains(next)) dials_.emplace(next, Dialling{Dial(plan_, next)});
  }
  open_ = std::move(wait_for_mail);
}

void Linker::advance_dials() {
  const TimePoint now = Clock::now();
  for (auto entry = dials_.begin(); entry != dials_.end();) {
    const bool is_over = advance(entry->first, entry->second, now);
    entry = is_over ? dials_.erase(entry) : std::next(entry);
  }
}

bool Linker::advance(const LinkKey& key, Dialling& dialling, TimePoint now) {
  if (dialling.refused_at) {
    if (now < *dialling.refused_at + kNewsTravel) return false;
    if (given_up_.insert(key.peer).second) events_.refused(key.peer);
    return true;
  }
  try {
    auto stream = dialling.dial.advance(now);
    if (!stream) return false;
    add(key, std::move(stream));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kPeerLost) {
      dialling.refused_at = now;
      return false;
    }
    give_up(key.peer, error);
  }
  return true;
}

void Linker::add(const LinkKey& key, std::unique_ptr<net::Stream> stream) {
  made_.insert(key);
  try {
    events_.made(key, std::move(stream));
  } catch (const Error& error) {
    give_up(key.peer, error);
  }
}

void Linker::give_up(Rank peer, const Error& error) {
  if (given_up_.insert(peer).second) events_.failed(peer, error);
}

/// Two ranks that dial each other must not get two links. A lower rank that has asked for the link
/// answers kNotNow, because the higher rank accepts that link. A lower rank that has not asked yet
/// accepts, and never asks.
Answer Linker::decide(const LinkKey& key) const {
  if (!is_for_later(key)) return Answer::kUnexpected;
  const auto own = dials_.find(key);
  const bool is_mine = own != dials_.end() && own->second.dial.has_asked();
  return (is_mine && plan_.self < key.peer) || made_.contains(key) ? Answer::kNotNow
                                                                   : Answer::kTaken;
}

bool Linker::is_for_later(const LinkKey& key) const {
  const auto peer = plan_.peers.find(key.peer);
  if (peer == plan_.peers.end()) return false;
  const std::vector<LinkKind>& kinds = peer->second.later_kinds;
  return std::ranges::find(kinds, key.kind) != kinds.end();
}

void Linker::take(const LinkKey& key, std::unique_ptr<net::Stream> stream) {
  dials_.erase(key);
  add(key, std::move(stream));
}

}  // namespace peal::transport
