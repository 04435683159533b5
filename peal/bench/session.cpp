#include "peal/bench/session.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "peal/base/error.h"
#include "peal/net/socket.h"
#include "peal/system/open_files.h"
#include "peal/system/pipe.h"
#include "peal/system/process_state.h"

namespace peal::bench {
namespace {

/// A Python worker that loads torch takes seconds, and longer if many workers share few cores.
constexpr Timeout kMeeting = std::chrono::seconds(90);
/// Between the end of a worker and the report of its launcher.
constexpr Timeout kLeaveGrace = std::chrono::milliseconds(500);
/// The time for workers to end by themselves, and then the time after SIGTERM.
constexpr Timeout kOwnEnd = std::chrono::seconds(3);
constexpr Timeout kGrace = std::chrono::seconds(2);

/// Appends the available bytes; returns false at the end of the file.
bool read_more(int fd, std::string& text) {
  std::array<std::byte, 1 << 16> bytes;
  const net::Moved moved = net::try_read(fd, bytes);
  text.append(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::size_t>(moved.bytes.value));
  return !moved.closed;
}

/// For each worker: its connection and a pidfd. For each started process: three ends of pipes. A
/// fleet has at most one process for each worker.
long descriptors_of(const std::vector<Fleet>& fleets) {
  constexpr long kForOthers = 64;
  constexpr long kForEach = 5;
  long workers = 0;
  for (const Fleet& fleet : fleets) workers += fleet.ranks;
  return kForOthers + kForEach * workers;
}

}  // namespace

Session::Session(std::vector<Fleet> fleets, Fd socket, launch::SignalReader& signals)
    : listener_(std::move(socket)), signals_(signals) {
  allow_open_files(descriptors_of(fleets), "measuring this many ranks");
  for (Fleet& fleet : fleets) {
    const auto ranks = static_cast<std::size_t>(fleet.ranks);
    crews_.push_back({.fleet = std::move(fleet), .members = {}, .note = {}, .loss = {}});
    crews_.back().members.resize(ranks);
  }
  guard_ = std::make_unique<launch::LocalGuard>(make_duty());
  writers_.clear();
  try {
    meet(Deadline::after(kMeeting));
  } catch (...) {
    end_workers();
    throw;
  }
}

Session::~Session() { end_workers(); }

launch::GuardDuty Session::make_duty() {
  launch::GuardDuty duty{.mask = signals_.previous_mask(), .grace = kGrace};
  for (std::size_t i = 0; i < crews_.size(); ++i) {
    for (const launch::RankCommand& process : crews_[i].fleet.processes) {
      Pipe pipe = make_pipe();
      ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
      duty.ranks.push_back(process);
      duty.ranks.back().rank = static_cast<Rank>(processes_.size());  // unique, for the guard
      // The guard closes both outputs, so they must be two descriptors.
      const int copy = ::fcntl(pipe.writer.get(), F_DUPFD_CLOEXEC, 3);
      duty.outputs.insert(duty.outputs.end(), {pipe.writer.get(), copy});
      writers_.push_back(std::move(pipe.writer));
      writers_.emplace_back(copy);
      Process& added = processes_.emplace_back();
      added.crew = i;
      added.rank = process.rank;
      added.output = std::move(pipe.reader);
      added.lines = std::make_unique<launch::LineSplitter>(
          [tail = added.tail.get()](launch::LineEnd, std::string_view line) { tail->add(line); });
    }
  }
  return duty;
}

bool Session::all_have_come() const {
  return std::ranges::all_of(crews_, [](const Crew& crew) {
    return !crew.loss.empty() || std::ranges::all_of(crew.members, [](const Member& member) {
      return bool(member.socket);
    });
  });
}

void Session::meet(Deadline deadline) {
  while (!all_have_come() && !deadline.passed()) wait_for_news(deadline);
  for (Crew& crew : crews_) {
    const auto missing =
        std::ranges::count_if(crew.members, [](const Member& m) { return !m.socket; });
    if (crew.loss.empty() && missing > 0) {
      lose(crew, fmt::format("{} of {} workers did not connect", missing, crew.fleet.ranks));
    }
  }
}

// Waits for the next events and handles them.
void Session::wait_for_news(Deadline deadline) {
  std::vector<pollfd> entries = {{signals_.fd(), POLLIN, 0},
                                 {guarded_ == Guarded::kSome ? guard_->events() : -1, POLLIN, 0},
                                 {listener_.get(), POLLIN, 0}};
  for (const Process& process : processes_) entries.push_back({process.output.get(), POLLIN, 0});
  for (const Newcomer& newcomer : newcomers_) entries.push_back({newcomer.socket.get(), POLLIN, 0});
  for (const Crew& crew : crews_) {
    for (const Member& member : crew.members) entries.push_back({member.socket.get(), POLLIN, 0});
  }
  net::poll_until(entries, deadline);

  auto entry = entries.begin() + 3;
  for (Process& process : processes_) {
    if ((entry++)->revents != 0) read_output(process);
  }
  const std::size_t newcomers = newcomers_.size();
  for (std::size_t i = 0; i < newcomers; ++i) {
    if ((entry++)->revents != 0) read_from(newcomers_[i]);
  }
  for (Crew& crew : crews_) {
    for (Member& member : crew.members) {
      if ((entry++)->revents != 0 && member.socket) read_from(crew, member);
    }
  }
  std::erase_if(newcomers_, [](const Newcomer& newcomer) { return !newcomer.socket; });
  if (entries[2].revents != 0) accept_newcomer();
  if (entries[1].revents != 0) take_events();
  if (entries[0].revents != 0) handle_signals();
}

void Session::handle_signals() {
  while (const auto taken = signals_.try_next()) {
    const int signal = taken->signal;
    const bool ends =
        signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
    if (!ends || stage_ == Stage::kEnding) continue;
    stage_ = Stage::kInterrupted;
    throw SignalReceived(signal);
  }
}

void Session::take_events() {
  while (const auto event = guard_->try_next()) {
    if (event->kind == launch::GuardEvent::Kind::kGone) {
      guarded_ = Guarded::kNone;
      continue;
    }
    Process& process = processes_[static_cast<std::size_t>(event->rank)];
    Crew& crew = crews_[process.crew];
    if (event->kind == launch::GuardEvent::Kind::kNotStarted) {
      throw system_error(fmt::format("cannot start {}", crew.fleet.processes.front().program),
                         event->value);
    }
    if (event->kind != launch::GuardEvent::Kind::kEnded) continue;
    process.status = event->value;
    while (process.output) read_output(process);
    lose(crew,
         fmt::format("{} {}{}",
                     crew.fleet.processes.size() == 1 ? "its launcher"
                                                      : fmt::format("rank {}", process.rank),
                     describe_wait_status(event->value),
                     last_words(crew)));
  }
  if (guard_->has_ended()) guarded_ = Guarded::kNone;
}

// Closes the output when the process has ended and all its output is read.
void Session::read_output(Process& process) {
  std::array<char, 1 << 16> bytes;
  const auto got = ::read(process.output.get(), bytes.data(), bytes.size());
  if (got > 0) {
    process.lines->feed({bytes.data(), static_cast<std::size_t>(got)});
    return;
  }
  if (got < 0 && errno == EAGAIN && !process.status) return;
  process.lines->finish();
  process.output.reset();
}

void Session::accept_newcomer() {
  if (auto socket = net::accept_from(listener_.get(), Deadline::after(Timeout(0)))) {
    newcomers_.push_back({.socket = std::move(*socket), .read = {}});
  }
}

void Session::read_from(Newcomer& newcomer) {
  if (!read_more(newcomer.socket.get(), newcomer.read)) return newcomer.socket.reset();
  const auto end = newcomer.read.find('\n');
  if (end == std::string::npos) return;
  const Hello hello = parse_hello(newcomer.read.substr(0, end));
  const auto crew =
      std::ranges::find_if(crews_, [&](const Crew& c) { return c.fleet.backend == hello.backend; });
  if (crew == crews_.end() || hello.rank >= crew->fleet.ranks) return newcomer.socket.reset();
  Member& member = crew->members[static_cast<std::size_t>(hello.rank)];
  const pid_t pid = net::neighbour_at(newcomer.socket.get()).process;
  member.process = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  member.socket = std::move(newcomer.socket);
  if (hello.rank == 0) crew->note = hello.note;
}

void Session::read_from(Crew& crew, Member& member) {
  const bool is_open = read_more(member.socket.get(), member.read);
  if (!member.answer) member.answer = try_take_answer(member.read);
  if (is_open) return;
  member.socket.reset();
  if (crew.loss.empty() && stage_ == Stage::kRunning) lose_by_silence(crew);
}

// A worker has closed its connection. Waits a moment for the report of its end.
void Session::lose_by_silence(Crew& crew) {
  const Deadline deadline = Deadline::after(kLeaveGrace);
  const auto has_ended = [&] {
    return std::ranges::any_of(processes_, [&](const Process& process) {
      return &crews_[process.crew] == &crew && process.status;
    });
  };
  while (!has_ended() && !deadline.passed() && guarded_ == Guarded::kSome) {
    pollfd entry{guard_->events(), POLLIN, 0};
    net::poll_until({&entry, 1}, deadline);
    take_events();
  }
  if (crew.loss.empty()) lose(crew, "a worker ended" + last_words(crew));
}

// The last lines of a process of the crew that has written output.
std::string Session::last_words(const Crew& crew) const {
  std::vector<std::string> lines;
  for (const Process& process : processes_) {
    if (&crews_[process.crew] != &crew || !lines.empty()) continue;
    lines = process.tail->lines();
  }
  if (lines.empty()) return "";
  return fmt::format("; it wrote:\n  | {}", fmt::join(lines, "\n  | "));
}

void Session::lose(Crew& crew, const std::string& why) {
  if (!crew.loss.empty() || stage_ == Stage::kEnding) return;
  crew.loss = why;
  for (Member& member : crew.members) {
    if (member.process) {
      ::syscall(SYS_pidfd_send_signal, member.process.get(), SIGKILL, nullptr, 0);
    }
    member.socket.reset();
  }
}

std::optional<std::vector<Answer>> Session::ask(std::size_t index,
                                                const Command& command,
                                                Deadline deadline) {
  Crew& crew = crews_[index];
  const std::string text = encode(command);
  for (Member& member : crew.members) {
    member.answer.reset();
    if (!crew.loss.empty()) return std::nullopt;
    try {
      net::write_all(member.socket.get(), std::as_bytes(std::span(text)), deadline);
    } catch (const Error&) {
      lose_by_silence(crew);
    }
  }
  const auto has_answered = [](const Member& member) { return member.answer.has_value(); };
  while (crew.loss.empty() && !std::ranges::all_of(crew.members, has_answered)) {
    if (deadline.passed())
      lose(crew, "did not answer in time to: " + text.substr(0, text.size() - 1));
    wait_for_news(deadline);
  }
  if (!crew.loss.empty()) return std::nullopt;
  std::vector<Answer> answers;
  for (Member& member : crew.members) answers.push_back(std::move(*member.answer));
  return answers;
}

// Idle workers end by themselves when their sockets are closed. Busy workers get SIGTERM.
void Session::end_workers() noexcept try {
  const bool is_idle = stage_ == Stage::kRunning;
  stage_ = Stage::kEnding;
  newcomers_.clear();
  for (Crew& crew : crews_) {
    for (Member& member : crew.members) member.socket.reset();
  }
  if (is_idle) wait_for_end(Deadline::after(kOwnEnd));
  if (guarded_ == Guarded::kNone) return;
  guard_->stop(SIGTERM, launch::SignalOrigin::kProcess);
  wait_for_end(Deadline::after(2 * kGrace));
} catch (const std::exception&) {  // the guard kills the remaining workers
}

void Session::wait_for_end(Deadline deadline) {
  while (guarded_ == Guarded::kSome && !deadline.passed()) wait_for_news(deadline);
}

}  // namespace peal::bench
