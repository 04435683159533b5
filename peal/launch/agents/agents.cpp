#include "peal/launch/agents/agents.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "peal/base/error.h"
#include "peal/launch/own_host.h"
#include "peal/observe/end_file.h"
#include "peal/observe/flight_folder.h"
#include "peal/system/open_files.h"
#include "peal/system/whole_file.h"

namespace peal::launch::agents {
namespace {

constexpr long kTickNanoseconds = 200'000'000;
/// Two pipes, the errors, and the connection with the process.
constexpr long kFilesOfAHost = 8;
constexpr long kFilesOfOthers = 64;

Fd make_timer() {
  Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer) throw system_error("cannot make a timer", errno);
  const itimerspec every{.it_interval = {.tv_sec = 0, .tv_nsec = kTickNanoseconds},
                         .it_value = {.tv_sec = 0, .tv_nsec = kTickNanoseconds}};
  ::timerfd_settime(timer.get(), 0, &every, nullptr);
  return timer;
}

/// The names of the files with the records of a rank.
void add_names(Rank rank, std::set<std::string>& names) {
  for (const std::string& path :
       {observe::flight_file_in("", rank), observe::end_file_in("", rank)}) {
    names.insert(std::filesystem::path(path).filename().string());
  }
}

bool is_connected(const std::unique_ptr<AgentHost>& host) {
  return host->state() != AgentHost::State::kRefused && host->state() != AgentHost::State::kLost;
}

constexpr int kTimer = -1;  // instead of the number of a host
constexpr int kInput = -2;

/// Replaces the descriptor `before` by `now` in the set; -1: none. `owner`: the number of the host.
void replace(int set, int before, int now, std::uint32_t events, int owner) {
  if (before == now) return;
  if (before >= 0) ::epoll_ctl(set, EPOLL_CTL_DEL, before, nullptr);  // fails if it is closed
  epoll_event event{.events = events, .data = {.fd = owner}};
  if (now >= 0) ::epoll_ctl(set, EPOLL_CTL_ADD, now, &event);
}

}  // namespace

Agents::Agents(AgentsOptions options, SignalReader& signals)
    : options_(std::move(options)),
      signals_(signals),
      poll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(make_timer()) {
  if (!poll_) throw system_error("cannot watch the connections with the hosts", errno);
  replace(poll_.get(), -1, timer_.get(), EPOLLIN, kTimer);
}

Agents::~Agents() {
  for (const auto& host : hosts_) host->disconnect();  // all at once, so that they end together
  hosts_.clear();
}

int Agents::add(const std::string& host, std::optional<HostNeeds> needs) {
  Begin begin = options_.begin;
  if (needs) {
    begin.commands = std::move(needs->commands);
    begin.images = std::move(needs->images);
  }
  // Names of Slurm's nodes are not always host names.
  if (options_.engine.engine != Engine::kSsh || !is_this_machine(host)) {
    return add(host, options_.engine, std::move(begin));
  }
  return add(host,
             {.engine = Engine::kThisMachine,
              .peal = std::filesystem::read_symlink("/proc/self/exe").string()},
             std::move(begin));
}

int Agents::add_other(const std::string& host) {
  return add(host, options_.engine, options_.begin);
}

int Agents::add(const std::string& host, const EngineOptions& engine, Begin begin) {
  const auto connected = std::ranges::count_if(hosts_, is_connected);
  allow_open_files(kFilesOfOthers + kFilesOfAHost * (connected + 1), "connecting with the hosts");
  hosts_.push_back(std::make_unique<AgentHost>(
      host, engine, std::move(begin), options_.files, options_.version, signals_.previous_mask()));
  known_.push_back(AgentHost::State::kStarting);
  watches_.emplace_back();
  const int number = count() - 1;
  note_changes(number);
  watch(number);
  return number;
}

void Agents::leave(int number, const std::string& reason) {
  host(number).leave(reason);
  note_changes(number);
  watch(number);
}

void Agents::watch(int number) {
  AgentHost& each = host(number);
  Watch& watch = watches_[static_cast<std::size_t>(number)];
  const auto full = full_pipes_.find(number);
  const bool is_paused = full != full_pipes_.end();
  const Watch wanted{.in = is_paused ? -1 : each.link().in(),
                     .out = each.link().wants_to_write() ? each.link().out() : -1,
                     .errors = each.errors(),
                     .full_pipe = is_paused ? full->second : -1};
  replace(poll_.get(), watch.in, wanted.in, EPOLLIN, number);
  replace(poll_.get(), watch.out, wanted.out, EPOLLOUT, number);
  replace(poll_.get(), watch.errors, wanted.errors, EPOLLIN, number);
  replace(poll_.get(), watch.full_pipe, wanted.full_pipe, EPOLLOUT, number);
  watch = wanted;
}

/// At a tick of the timer these are all hosts, because their limits must be checked.
std::set<int> Agents::hosts_with_events() {
  std::array<epoll_event, 64> events;
  const int found = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
  std::set<int> hosts;
  for (int i = 0; i < found; ++i) hosts.insert(events[static_cast<std::size_t>(i)].data.fd);
  hosts.erase(kInput);
  if (hosts.erase(kTimer) == 0) return hosts;
  std::uint64_t ticks = 0;
  [[maybe_unused]] const auto got = ::read(timer_.get(), &ticks, sizeof ticks);
  for (int number = 0; number < count(); ++number) hosts.insert(number);
  return hosts;
}

void Agents::advance() {
  const std::set<int> numbers = hosts_with_events();
  const TimePoint now = Clock::now();
  for (const int number : numbers) {
    AgentHost& each = host(number);
    each.read_errors();
    if (full_pipes_.contains(number)) {
      each.link().hear(now);
    } else if (each.link().in() >= 0) {
      each.read_some(now);
    }
    each.link().write_some();
    each.check(now, options_.patience);
    note_changes(number);
    watch(number);
  }
}

void Agents::note_changes(int number) {
  const auto state = host(number).state();
  if (std::exchange(known_[static_cast<std::size_t>(number)], state) == state) return;
  if (state != AgentHost::State::kStarting && state != AgentHost::State::kAsked) {
    news_.push_back({number, state});
  }
}

std::optional<HostNews> Agents::try_next_news() {
  if (news_.empty()) return std::nullopt;
  const HostNews first = news_.front();
  news_.erase(news_.begin());
  return first;
}

void Agents::pause(int host, int full_pipe) {
  if (full_pipe >= 0) {
    full_pipes_[host] = full_pipe;
  } else {
    full_pipes_.erase(host);
  }
  watch(host);
}

/// A file on a disk cannot be watched, and is always readable.
void Agents::watch_input(int fd) {
  replace(poll_.get(), input_, fd, EPOLLIN, kInput);
  input_ = fd;
}

void Agents::await_all(const std::function<bool()>& should_stop) {
  const auto is_open = [](const auto& host) {
    return host->state() == AgentHost::State::kStarting ||
           host->state() == AgentHost::State::kAsked;
  };
  while (std::ranges::any_of(hosts_, is_open)) {
    pollfd entry{poll_.get(), POLLIN, 0};
    ::poll(&entry, 1, -1);
    advance();
    if (should_stop()) return;
  }
  news_.clear();
}

void Agents::collect_records(const std::string& folder, int ranks, Timeout limit) {
  if (folder.empty()) return;
  std::set<std::string> names;
  for (Rank rank = 0; rank < ranks; ++rank) add_names(rank, names);
  std::map<int, RecordOrder> orders;
  for (int number = 0; number < count(); ++number) orders[number] = {};
  collect(orders, folder, names, limit);
}

void Agents::collect_round(const std::string& folder,
                           int round,
                           const std::map<std::string, std::vector<Rank>>& ranks,
                           Timeout limit) {
  if (folder.empty()) return;
  std::set<std::string> names;
  std::map<int, RecordOrder> orders;
  for (int number = 0; number < count(); ++number) {
    const auto own = ranks.find(host(number).name());
    if (own == ranks.end()) continue;
    orders[number] = {.round = round, .ranks = own->second};
    for (const Rank rank : own->second) add_names(rank, names);
  }
  collect(orders, folder, names, limit);
}

void Agents::forget_round(int round) {
  for (const auto& each : hosts_) {
    if (each->is_ready())
      each->link().send(FrameKind::kForget, encode(RecordOrder{.round = round}));
  }
}

void Agents::collect(const std::map<int, RecordOrder>& orders,
                     const std::string& folder,
                     const std::set<std::string>& names,
                     Timeout limit) {
  std::set<int> waiting;
  for (const auto& [number, order] : orders) {
    if (!host(number).is_ready() || host(number).facts().records.empty()) continue;
    host(number).link().send(FrameKind::kCollect, encode(order));
    waiting.insert(number);
  }
  const Deadline deadline = Deadline::after(limit);
  while (!waiting.empty() && !deadline.passed()) {
    std::array<pollfd, 2> entries{pollfd{poll_.get(), POLLIN, 0}, pollfd{signals_.fd(), POLLIN, 0}};
    ::poll(entries.data(), entries.size(), static_cast<int>(deadline.left().count()));
    if (const int signal = signals_.take_end(); signal != 0) {
      ::raise(signal);  // for the caller, which reads signals later
      return;
    }
    advance();
    std::erase_if(waiting, [&](int number) { return take_records(number, folder, names); });
  }
}

bool Agents::take_records(int number,
                          const std::string& folder,
                          const std::set<std::string>& names) {
  AgentHost& each = host(number);
  AgentLink& link = each.link();
  try {
    while (const auto frame = link.try_next()) {
      if (frame->kind == FrameKind::kCollected) return true;
      if (frame->kind != FrameKind::kRecord) continue;
      const Record record = decode_record(frame->payload);
      // A host chooses neither other names nor other folders.
      if (!names.contains(record.name)) continue;
      write_whole_file(std::filesystem::path(folder) / record.name, record.bytes);
    }
  } catch (const Error&) {  // no agent sends such bytes, or the disk is full
    each.disconnect();
  }
  return link.is_closed();
}

}  // namespace peal::launch::agents
