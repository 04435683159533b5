#include "peal/launch/agents/agent.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/launch/agents/agent_link.h"
#include "peal/launch/agents/agent_protocol.h"
#include "peal/launch/agents/file_copy.h"
#include "peal/launch/agents/host_facts.h"
#include "peal/launch/agents/rank_input.h"
#include "peal/launch/agents/rank_outputs.h"
#include "peal/launch/flights.h"
#include "peal/launch/lost_batch_host.h"
#include "peal/launch/report.h"
#include "peal/launch/supervisor.h"
#include "peal/net/socket.h"
#include "peal/observe/flight_folder.h"
#include "peal/system/own_file.h"
#include "peal/system/process_state.h"

namespace peal::launch::agents {
namespace {

/// Short, so that heartbeats are not much later than kBeatPause.
constexpr Timeout kTick{100};
/// How long to wait for the first frame.
constexpr Timeout kPatience{60'000};
/// The most that a user may ask for by default (pipe-max-size in proc(5)).
constexpr int kBytesOfThePipe = 1 << 20;

/// A folder that does not exist is a problem of the host, which host_facts reports.
Begin enter_directory(Begin begin) {
  [[maybe_unused]] const int result = ::chdir(begin.directory.c_str());
  return begin;
}

class Agent final {
 public:
  Agent(AgentLink& link, Begin begin, const std::string& problem_with_files);
  void run();
  /// Whether it ended the ranks because the launcher was gone.
  bool has_lost_launcher() const { return has_lost_launcher_; }

 private:
  bool is_over() const;
  void wait_and_handle();
  void handle_frames();
  void handle(const Frame& frame);
  enum class Input : unsigned char { kNone, kFollows };
  void start(const RankCommand& command, Input input);
  void start_with_files(const RankCommand& command, Input input);
  void write_input();
  void handle(const GuardEvent& event);
  void leave_end_of(const GuardEvent& event) const;
  void check_launcher(TimePoint now);
  void tell_signal();
  void tell_gone(TimePoint now);
  void send_records(const RecordOrder& order);
  void forget_records(int round) const;

  AgentLink& link_;
  const Begin begin_;
  const Flights flights_;
  const Fd port_;
  const TimePoint start_ = Clock::now();
  SignalReader signals_;
  Supervisor supervisor_;
  RankOutputs outputs_;
  InputSink input_;
  std::map<Rank, observe::EndPlace> started_;
  std::set<Rank> stopped_;
  bool guard_is_busy_ = false;       // it still starts ranks
  bool launcher_may_pause_ = false;  // it has passed on SIGTSTP, and stops itself
  bool has_lost_launcher_ = false;
  bool has_told_signal_ = false;
  bool has_told_gone_ = false;
  TimePoint gone_since_ = TimePoint::max();
};

Agent::Agent(AgentLink& link, Begin begin, const std::string& problem_with_files)
    : link_(link),
      begin_(enter_directory(std::move(begin))),
      flights_(begin_.environment),
      port_(net::reserve(net::Address::parse("0.0.0.0:0"))),
      supervisor_(signals_, GuardDuty{.grace = begin_.grace, .starts = Starts::kAlsoLater}),
      outputs_(link) {
  Ready ready = host_facts(begin_, process_variables());
  if (!problem_with_files.empty()) {
    ready.exit_code = 1;
    ready.problem = problem_with_files;
  }
  ready.port = net::local_address(port_.get()).port();
  ready.records = flights_.folder();
  link_.send(FrameKind::kReady, encode(ready));
}

void Agent::run() {
  while (!is_over()) wait_and_handle();
}

/// After the last rank, the launcher may still want the records.
bool Agent::is_over() const { return supervisor_.stage() == Stage::kGone && link_.is_closed(); }

void Agent::wait_and_handle() {
  std::vector<pollfd> entries = {{link_.in(), POLLIN, 0},
                                 {link_.wants_to_write() ? link_.out() : -1, POLLOUT, 0},
                                 {guard_is_busy_ ? supervisor_.guard().orders() : -1, POLLOUT, 0},
                                 {input_.waits_for(), POLLOUT, 0}};
  const std::size_t first_of_supervisor = entries.size();
  supervisor_.add_to(entries);
  const std::size_t first_output = entries.size();
  outputs_.add_to(entries);
  ::poll(entries.data(), entries.size(), static_cast<int>(kTick.count()));
  const TimePoint now = Clock::now();
  const std::span all(entries);
  outputs_.read(all.subspan(first_output));
  supervisor_.handle(all.subspan(first_of_supervisor, Supervisor::kEntries),
                     [this](const GuardEvent& event) { handle(event); });
  tell_gone(now);
  if (entries[1].revents != 0) link_.write_some();
  if (entries[0].revents != 0) link_.read_some(now);
  handle_frames();
  write_input();
  link_.beat(now);
  check_launcher(now);
  tell_signal();
}

/// Leaves frames in the queue while the guard starts ranks, which takes time. The agent does not
/// wait for the guard, because the agent must send heartbeats.
void Agent::handle_frames() {
  while (true) {
    pollfd guard{supervisor_.guard().orders(), POLLOUT, 0};
    guard_is_busy_ = guard.fd >= 0 && ::poll(&guard, 1, 0) == 0;
    if (guard_is_busy_) return;
    const auto frame = link_.try_next();
    if (!frame) return;
    handle(*frame);
  }
}

void Agent::handle(const Frame& frame) {
  launcher_may_pause_ = false;
  switch (frame.kind) {
    case FrameKind::kStart:
      return start(decode_command(frame.payload), Input::kNone);
    case FrameKind::kStartReader:
      return start(decode_command(frame.payload), Input::kFollows);
    case FrameKind::kInput:
      return input_.take(frame.payload);
    case FrameKind::kSignal: {
      const SignalOrder order = decode_signal(frame.payload);
      return supervisor_.guard().signal(order.rank, order.signal);
    }
    case FrameKind::kPassOn: {
      const int signal = decode_signal(frame.payload).signal;
      launcher_may_pause_ = signal == SIGTSTP;
      return supervisor_.guard().pass_on(signal, SignalOrigin::kProcess);
    }
    case FrameKind::kStop:
      return supervisor_.stop(decode_signal(frame.payload).signal, SignalOrigin::kProcess);
    case FrameKind::kAsk:
      return supervisor_.ask_to_stop(decode_signal(frame.payload).signal, SignalOrigin::kProcess);
    case FrameKind::kWarn:
      return supervisor_.guard().warn();
    case FrameKind::kKill:
      return supervisor_.guard().kill();
    case FrameKind::kCollect:
      return send_records(decode_record_order(frame.payload));
    case FrameKind::kForget:
      return forget_records(decode_record_order(frame.payload).round);
    case FrameKind::kBegin:
    case FrameKind::kFile:
    case FrameKind::kFilesEnd:
    case FrameKind::kReady:
    case FrameKind::kEvent:
    case FrameKind::kOutput:
    case FrameKind::kRecord:
    case FrameKind::kCollected:
    case FrameKind::kEnding:
    case FrameKind::kInputTaken:
    case FrameKind::kInputClosed:
    case FrameKind::kBeat:
      break;
  }
  throw Error(ErrorKind::kMismatch, "a message that no launcher sends to an agent");
}

void Agent::start(const RankCommand& command, Input input) {
  try {
    start_with_files(command, input);
    started_[command.rank] = end_place_of({command});
  } catch (const Error&) {  // too many open files
    handle(
        GuardEvent{.kind = GuardEvent::Kind::kNotStarted, .rank = command.rank, .value = EMFILE});
  }
}

void Agent::start_with_files(const RankCommand& command, Input input) {
  const RankOutputs::Writers writers = outputs_.add(command.rank);
  const Fd in = input == Input::kFollows ? input_.open() : Fd();
  supervisor_.guard().start(command, {writers.out.get(), writers.err.get(), in.get()});
}

void Agent::write_input() {
  if (const auto answer = input_.write_some()) link_.send(*answer);
}

/// The output of a rank goes before the event of its end.
void Agent::handle(const GuardEvent& event) {
  if (event.kind == GuardEvent::Kind::kStopped) stopped_.insert(event.rank);
  if (event.kind == GuardEvent::Kind::kEnded) {
    outputs_.drain(event.rank);
    leave_end_of(event);
  }
  link_.send(FrameKind::kEvent, encode(event));
}

/// For the rank's peers on this host, and for `peal why`. A worker of an elastic job has no folder
/// in its environment, because its rank changes. Its driver leaves its end.
void Agent::leave_end_of(const GuardEvent& event) const {
  const TimePoint now = Clock::now();
  leave_end(started_.at(event.rank),
            {.rank = event.rank,
             .pid = event.pid,
             .status = event.value,
             .after = now - start_,
             .ended_by = supervisor_.ender_of(event.value, now),
             .was_stopped = stopped_.contains(event.rank),
             .out_of_memory = out_of_memory(event.detail)});
}

/// A launcher that closes the connection on purpose has sent kStop before. This order may still be
/// in the queue if the guard is busy.
void Agent::check_launcher(TimePoint now) {
  const bool is_silent = link_.silence(now) > begin_.silence;
  if (is_silent && !launcher_may_pause_) link_.close();
  if (link_.is_closed() && !guard_is_busy_ && supervisor_.stage() < Stage::kStopping) {
    has_lost_launcher_ = true;
    supervisor_.stop(SIGTERM, SignalOrigin::kProcess);
  }
}

/// Reports the signal: an engine ends a job by signals, and the launcher should know why ranks end.
void Agent::tell_signal() {
  const int signal = supervisor_.intervention().signal;
  if (signal == 0 || std::exchange(has_told_signal_, true)) return;
  link_.send(FrameKind::kEnding, signal_name(signal));
}

/// Does not wait for the last output if a process that hangs in the kernel holds the pipe open.
void Agent::tell_gone(TimePoint now) {
  if (supervisor_.stage() != Stage::kGone || has_told_gone_) return;
  if (link_.is_full()) return;  // the launcher takes the output later
  gone_since_ = std::min(gone_since_, now);
  if (!outputs_.is_empty() && now - gone_since_ < kLastOutput) return;
  outputs_.clear();
  has_told_gone_ = true;
  handle(
      GuardEvent{.kind = GuardEvent::Kind::kGone, .value = supervisor_.intervention().survivors});
}

void Agent::send_records(const RecordOrder& order) {
  const std::string folder = order.round == 0
                                 ? flights_.folder()
                                 : observe::round_folder_in(flights_.folder(), order.round);
  std::vector<Rank> ranks = order.ranks;
  if (ranks.empty()) {
    for (const auto& [rank, ends] : started_) ranks.push_back(rank);
  }
  for (const Rank rank : ranks) {
    for (const std::string& path :
         {observe::flight_file_in(folder, rank), observe::end_file_in(folder, rank)}) {
      try {
        link_.send(
            FrameKind::kRecord,
            encode(Record{std::filesystem::path(path).filename().string(), read_own_file(path)}));
      } catch (const Error&) {
        // Without this record, the others may still show the cause.
      }
    }
  }
  link_.send(FrameKind::kCollected);
}

void Agent::forget_records(int round) const {
  if (!flights_.place().is_private) return;
  std::error_code stays;
  std::filesystem::remove_all(observe::round_folder_in(flights_.folder(), round), stays);
}

Error no_launcher() {
  return {ErrorKind::kMismatch,
          "peal agent is started by peal run, and speaks with it through its standard input and "
          "output; to start a job, use peal run"};
}

/// The next frame before the ranks start. Nothing if the launcher is gone, or leaves this host.
std::optional<Frame> await_frame(AgentLink& link) {
  const Deadline deadline = Deadline::after(kPatience);
  while (!link.is_closed() && !deadline.passed()) {
    if (auto frame = link.try_next()) {
      if (frame->kind == FrameKind::kStop) return std::nullopt;
      return frame;
    }
    std::array<pollfd, 2> entries = {pollfd{link.in(), POLLIN, 0},
                                     pollfd{link.wants_to_write() ? link.out() : -1, POLLOUT, 0}};
    ::poll(entries.data(), entries.size(), static_cast<int>(kTick.count()));
    link.write_some();
    if (entries[0].revents != 0) link.read_some(Clock::now());
  }
  if (link.is_closed()) return std::nullopt;
  throw no_launcher();
}

std::optional<Begin> await_begin(AgentLink& link) {
  const auto frame = await_frame(link);
  if (!frame) return std::nullopt;
  if (frame->kind != FrameKind::kBegin) throw no_launcher();
  return decode_begin(frame->payload);
}

/// Writes the files of the job. Returns why one cannot be written; nothing if the launcher is gone.
std::optional<std::string> take_files(AgentLink& link, const Begin& begin) {
  FilePartWriter writer(begin.directory);
  std::string problem;
  while (begin.has_files) {
    const auto frame = await_frame(link);
    if (!frame) return std::nullopt;
    if (frame->kind == FrameKind::kFilesEnd) break;
    if (frame->kind != FrameKind::kFile) throw no_launcher();
    if (!problem.empty()) continue;
    try {
      writer.take(decode_file_part(frame->payload));
    } catch (const Error& error) {
      problem = error.message();
    }
  }
  return problem;
}

}  // namespace

void serve_launcher(Fd in, Fd out, const std::string& version) {
  // MPICH kills a program whose pipe for stdin is full.
  ::fcntl(in.get(), F_SETPIPE_SZ, kBytesOfThePipe);
  const std::string banner = encode(Banner{.version = version});
  if (::write(out.get(), banner.data(), banner.size()) != std::ssize(banner)) return;
  AgentLink link(std::move(in), std::move(out), Clock::now());
  auto begin = await_begin(link);
  if (!begin) return;
  const auto problem = take_files(link, *begin);
  if (!problem) return;
  bool has_lost_launcher = false;
  {
    Agent agent(link, std::move(*begin), *problem);
    agent.run();
    has_lost_launcher = agent.has_lost_launcher();
  }
  if (has_lost_launcher) requeue_after_lost_batch_host(process_environment());
}

}  // namespace peal::launch::agents
