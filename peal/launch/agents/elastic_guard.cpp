#include "peal/launch/agents/elastic_guard.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "peal/base/error.h"
#include "peal/launch/agents/machine_variables.h"
#include "peal/launch/command.h"
#include "peal/launch/own_host.h"
#include "peal/system/cpus.h"

namespace peal::launch::agents {
namespace {

void watch(int set, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  if (::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0) return;
  throw system_error("cannot watch the guard of the workers", errno);
}

std::future<bool> look_up(const std::string& name) {
  try {
    return std::async(std::launch::async, [name] { return is_this_machine(name); });
  } catch (const std::system_error& error) {
    throw system_error("cannot start a thread that looks up a host", error.code().value());
  }
}

bool is_done(const std::future<bool>& answer) {
  return answer.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

}  // namespace

ElasticGuard::ElasticGuard(Agents& agents, LauncherFacts launcher, GuardDuty duty)
    : agents_(agents),
      launcher_(std::move(launcher)),
      local_(std::move(duty)),
      remote_(agents, Starts::kAlsoLater),
      poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!poll_) throw system_error("cannot watch the guards of the workers", errno);
  watch(poll_.get(), local_.events());
  watch(poll_.get(), remote_.events());
}

std::optional<GuardEvent> ElasticGuard::try_next() {
  take_names();
  while (const auto event = local_.try_next()) {
    if (event->kind != GuardEvent::Kind::kGone) return event;
    local_gone_ = event->value;
    ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, local_.events(), nullptr);
  }
  while (const auto event = remote_.try_next()) {
    if (event->kind != GuardEvent::Kind::kGone) return event;
    remote_gone_ = event->value;
  }
  take_news();
  if (!local_gone_ || !remote_gone_ || std::exchange(has_told_gone_, true)) return std::nullopt;
  return GuardEvent{.kind = GuardEvent::Kind::kGone, .value = *local_gone_ + *remote_gone_};
}

void ElasticGuard::pass_on(int signal, SignalOrigin origin) {
  local_.pass_on(signal, origin);
  remote_.pass_on(signal, origin);
}

void ElasticGuard::stop(int signal, SignalOrigin origin) {
  local_.stop(signal, origin);
  remote_.stop(signal, origin);
}

void ElasticGuard::ask_to_stop(int signal, SignalOrigin origin) {
  local_.ask_to_stop(signal, origin);
  remote_.ask_to_stop(signal, origin);
}

void ElasticGuard::warn() {
  local_.warn();
  remote_.warn();
}

void ElasticGuard::kill() {
  local_.kill();
  remote_.kill();
}

void ElasticGuard::start(const RankCommand& command, const StandardFiles& files) {
  const bool is_here = command.host.empty() || own_.contains(command.host);
  Guard& guard = is_here ? static_cast<Guard&>(local_) : remote_;
  guard.start(command, files);
}

/// A guard ignores a process that it does not know.
void ElasticGuard::signal(Rank rank, int signal) {
  local_.signal(rank, signal);
  remote_.signal(rank, signal);
}

void ElasticGuard::connect(const std::string& host) {
  if (launcher_.names == LauncherFacts::Names::kOfNodes) return connect_other(host);
  if (is_spelled_as_this_machine(host)) {
    joining_.push_back(host);
  } else if (!names_.contains(host)) {
    try {
      names_.emplace(host, look_up(host));
    } catch (const Error& error) {
      refuse(host, std::string(error.message()));
    }
  }
}

void ElasticGuard::refuse(const std::string& host, const std::string& problem, int exit_code) {
  host_events_.push_back({.kind = HostEvent::Kind::kRefused,
                          .host = host,
                          .problem = problem,
                          .exit_code = exit_code});
}

/// Hosts of this machine become ready together, because they share its cores.
void ElasticGuard::take_names() {
  for (auto name = names_.begin(); name != names_.end();) {
    auto& [host, is_own] = *name;
    if (!is_done(is_own)) {
      ++name;
      continue;
    }
    if (is_own.get()) {
      joining_.push_back(host);
    } else {
      connect_other(host);
    }
    name = names_.erase(name);
  }
  if (!names_.empty()) return;
  for (const std::string& host : std::exchange(joining_, {})) connect_own(host);
}

void ElasticGuard::connect_own(const std::string& host) {
  HostFacts facts{
      .arguments = launcher_.command, .environment = launcher_.environment, .quota = cpu_quota()};
  const CommandLookup found = find_command(launcher_.command.front(), launcher_.environment);
  if (found.exit_code != 0) return refuse(host, found.problem, found.exit_code);
  facts.program = found.path;
  facts.cores = usable_cores();
  own_.insert(host);
  host_events_.push_back(
      {.kind = HostEvent::Kind::kReady, .host = host, .facts = std::move(facts)});
}

void ElasticGuard::connect_other(const std::string& host) {
  try {
    numbers_[host] = agents_.add_other(host);
  } catch (const Error& error) {  // too many open files, or processes
    refuse(host, std::string(error.message()));
  }
}

void ElasticGuard::leave(const std::string& host) {
  own_.erase(host);
  std::erase(joining_, host);
  std::erase_if(host_events_, [&](const HostEvent& event) { return event.host == host; });
  const auto number = numbers_.find(host);
  if (number == numbers_.end()) return;
  agents_.leave(number->second, "it is not a host of the job any more");
  numbers_.erase(number);
}

std::optional<HostEvent> ElasticGuard::try_next_host() {
  take_names();
  take_news();
  if (host_events_.empty()) return std::nullopt;
  HostEvent first = std::move(host_events_.front());
  host_events_.pop_front();
  return first;
}

void ElasticGuard::take_news() {
  while (const auto news = remote_.try_next_news()) {
    const AgentHost& agent = agents_.host(news->host);
    const auto known = numbers_.find(agent.name());
    if (known == numbers_.end() || known->second != news->host) continue;  // the driver has left it
    if (news->state == AgentHost::State::kReady) {
      host_events_.push_back(
          {.kind = HostEvent::Kind::kReady, .host = agent.name(), .facts = facts_of(agent)});
      continue;
    }
    const bool was_ready = news->state == AgentHost::State::kLost;
    host_events_.push_back({.kind = was_ready ? HostEvent::Kind::kLost : HostEvent::Kind::kRefused,
                            .host = agent.name(),
                            .problem = agent.problem(),
                            .exit_code = std::max(1, agent.exit_code())});
    numbers_.erase(known);
  }
}

HostFacts ElasticGuard::facts_of(const AgentHost& agent) const {
  const Ready& ready = agent.facts();
  HostFacts facts{.program = ready.commands.front().program,
                  .arguments = ready.commands.front().command,
                  .environment = part_of(launcher_.environment, Part::kJob),
                  .cores = ready.cores,
                  .quota = ready.quota,
                  .machine = agent.name(),
                  .launcher = ready.launcher_address,
                  .records = ready.records};
  facts.environment.insert(ready.own.begin(), ready.own.end());
  return facts;
}

}  // namespace peal::launch::agents
