#include "peal/launch/agents/agent_host.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "peal/base/error.h"
#include "peal/base/printable.h"
#include "peal/launch/agents/engine_program.h"
#include "peal/launch/agents/machine_variables.h"
#include "peal/launch/start_process.h"
#include "peal/net/resolve.h"
#include "peal/net/socket.h"
#include "peal/system/pipe.h"

namespace peal::launch::agents {
namespace {

/// Names the folder for temporary files of Open MPI's mpirun. By default, all mpiruns of a user
/// share a folder, and two that start at the same time may fail ("mkdir: File exists").
constexpr const char* kMpirunFolder = "OMPI_MCA_orte_local_tmpdir_base";
constexpr const char* kMpirunFiles = "peal-mpirun.";

constexpr std::size_t kMostErrors = 8192;
/// More text before the banner is not a login message.
constexpr std::size_t kMostBefore = 1 << 16;
/// How long the engine's command may take to end after its connection has ended.
constexpr Timeout kToEnd{1000};
/// How long the name service may take.
constexpr Timeout kToResolve{2000};

double seconds(Timeout time) { return static_cast<double>(time.count()) / 1000.0; }

}  // namespace

Duration silence_limit(Duration least, int ranks, std::size_t cpus) {
  const int on_each = ranks / std::max(1, static_cast<int>(cpus));
  return std::clamp<Duration>(on_each * least, least, std::max<Duration>(least, kMostPatience));
}

AgentHost::AgentHost(std::string name,
                     const EngineOptions& engine,
                     Begin begin,
                     std::vector<FileToCopy> files,
                     std::string version,
                     const sigset_t& mask)
    : name_(std::move(name)),
      engine_(engine),
      begin_(std::move(begin)),
      files_(files),
      has_more_files_(!files.empty()),
      version_(std::move(version)),
      link_({}, {}, started_) {
  begin_.has_files = has_more_files_;
  begin_.addresses = addresses_of(engine_.engine);
  Pipe in = make_pipe();
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  const std::vector<std::string> command = agent_command(engine_, name_);
  Variables variables = process_variables();
  if (engine_.engine == Engine::kSlurm) {
    std::erase_if(variables, [](const auto& entry) { return limits_each_task(entry.first); });
  }
  if (engine_.engine == Engine::kMpi) {
    mpirun_files_.emplace(kMpirunFiles);
    variables[kMpirunFolder] = mpirun_files_->path();
  }
  const EngineProgram found = find_engine_program(engine_);
  if (!found.problem.empty()) {
    lacks_engine_ = engine_.engine != Engine::kThisMachine;
    refuse(found.problem);
    return;
  }
  const StartedProcess started = start_process(
      {.rank = 0,
       .program = found.path,
       .arguments = command,
       .environment = variables,
       .cpus = {}},
      {.in = in.reader.get(), .out = out.writer.get(), .err = err.writer.get(), .mask = mask});
  if (started.error != 0) {
    refuse(fmt::format("cannot start {}: {}", found.path, ::strerror(started.error)));
    return;
  }
  pid_ = started.pid;
  errors_ = std::move(err.reader);
  ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
  link_ = AgentLink(std::move(out.reader), std::move(in.writer), started_);
}

AgentHost::~AgentHost() {
  disconnect();
  end_process(kill_at_);
}

void AgentHost::read_some(TimePoint now) {
  if (state_ == State::kStarting) return take_banner(now);
  link_.read_some(now);
  if (state_ == State::kAsked) take_answer();
}

void AgentHost::take_banner(TimePoint now) {
  before_ += link_.read_text(now);
  std::size_t begin = 0;
  for (auto end = before_.find('\n'); end != std::string::npos; end = before_.find('\n', begin)) {
    const auto banner = decode_banner(std::string_view(before_).substr(begin, end - begin));
    begin = end + 1;
    if (!banner) continue;
    if (banner->protocol != kProtocol || banner->version != version_) {
      return refuse(fmt::format("peal {} is installed there, and peal {} here; install the same",
                                banner->version,
                                version_));
    }
    link_.unread(std::string_view(before_).substr(begin));
    before_.clear();
    state_ = State::kAsked;
    link_.send(FrameKind::kBegin, encode(begin_));
    send_files();
    return take_answer();
  }
  before_.erase(0, begin);
  if (before_.size() > kMostBefore) {
    refuse("it sends other output instead of the agent's answer; check what its login files print");
  }
}

/// As much as the queue takes. `check` continues.
void AgentHost::send_files() {
  try {
    while (has_more_files_ && !link_.is_full()) {
      const auto part = files_.next();
      has_more_files_ = part.has_value();
      if (part) {
        link_.send(FrameKind::kFile, encode(*part));
      } else {
        link_.send(FrameKind::kFilesEnd);
      }
      link_.write_some();
    }
  } catch (const Error& error) {
    refuse(std::string(error.message()));
  }
}

void AgentHost::take_answer() {
  try {
    const auto frame = link_.try_next();
    if (!frame) return;
    if (frame->kind != FrameKind::kReady) return refuse("its agent sends an unexpected message");
    facts_ = decode_ready(frame->payload);
  } catch (const Error& error) {
    return refuse(fmt::format("its agent sends {}", error.message()));
  }
  if (facts_.exit_code != 0) return refuse(facts_.problem);
  if (engine_.engine == Engine::kMpi) find_addresses();
  state_ = State::kReady;
  link_.hear(Clock::now());  // the time of the login does not count
}

/// mpirun passes on no address on which the agent could rely. So the name of the host decides.
void AgentHost::find_addresses() {
  try {
    const auto found = net::resolve(name_, 0, Deadline::after(kToResolve));
    const std::string text = found.front().to_string();  // "10.0.0.7:0" or "[fe80::7]:0"
    const bool is_ipv6 = text.starts_with('[');
    facts_.address = text.substr(is_ipv6 ? 1 : 0, text.rfind(':') - (is_ipv6 ? 2 : 0));
    facts_.launcher_address = net::own_address_towards(facts_.address);
  } catch (const Error&) {  // a name that only mpirun knows: other hosts may have an address
  }
}

void AgentHost::read_errors() {
  std::array<char, 4096> buffer;
  while (errors_) {
    const auto got = ::read(errors_.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;
    if (got == 0) return errors_.reset();
    error_text_.append(buffer.data(), static_cast<std::size_t>(got));
    if (error_text_.size() > kMostErrors) {
      error_text_.erase(0, error_text_.size() - kMostErrors);
    }
  }
}

void AgentHost::check(TimePoint now, const Patience& patience) {
  if (state_ == State::kRefused || state_ == State::kLost) {
    if (kill_at_.passed(now)) end_process(kill_at_);
    return;
  }
  link_.beat(now);
  if (state_ == State::kAsked) send_files();
  if (state_ != State::kReady) {
    if (link_.is_closed()) return refuse(reason_of_end());
    const std::string problem = problem_before_the_end(engine_.engine, error_text_);
    if (state_ == State::kStarting && !problem.empty()) return refuse(problem);
    if (now - started_ > patience.start) {
      return refuse(
          fmt::format("no answer within {} s{}", seconds(patience.start), last_words(error_text_)));
    }
    return;
  }
  if (link_.is_closed()) return lose(reason_of_end());
  const Duration least = silence_limit(patience.silence, ranks_, cpu_count(facts_.cores));
  const Duration limit = link_.patience(least);
  if (link_.silence(now) > limit) {
    lose(fmt::format("no sign of life for {:.3g} s", std::chrono::duration<double>(limit).count()));
  }
}

void AgentHost::refuse(const std::string& problem) { end(State::kRefused, problem); }

void AgentHost::lose(const std::string& problem) { end(State::kLost, problem); }

/// Does not wait for the engine's process, which may still have to pass on the last order: `check`
/// kills it later. Without an agent there is no order, so the process is killed at once.
void AgentHost::end(State state, const std::string& problem) {
  const bool has_agent = state_ != State::kStarting && !link_.is_closed();
  disconnect();
  if (!has_agent) end_process(Deadline(Clock::now()));
  state_ = state;
  problem_ = printable_line(problem);
  begin_ = {};  // an elastic job may connect with the host many times
}

void AgentHost::disconnect() {
  if (state_ == State::kAsked || state_ == State::kReady) {
    link_.send(FrameKind::kStop, encode(SignalOrder{.signal = SIGTERM}));
  }
  link_.close();
  kill_at_ = Deadline(std::min(kill_at_.at(), Clock::now() + kToEnd));
}

void AgentHost::leave(const std::string& reason) {
  if (state_ == State::kRefused || state_ == State::kLost) return;
  const std::string why =
      ending_.empty() ? reason : fmt::format("its agent was ended by {}", ending_);
  return state_ == State::kReady ? lose(why) : refuse(why);
}

/// The connection has ended, so the engine's command is about to end.
std::string AgentHost::reason_of_end() {
  const int status = end_process(Deadline::after(kToEnd));
  read_errors();
  if (!ending_.empty()) return fmt::format("its agent was ended by {}", ending_);
  return start_problem(engine_, status, error_text_);
}

int AgentHost::end_process(Deadline deadline) {
  if (pid_ < 0) return 0;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid_, &status, WNOHANG)) == 0 && !deadline.passed()) {
    ::poll(nullptr, 0, 5);
  }
  if (ended == 0) {
    ::kill(-pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
  }
  pid_ = -1;
  return status;
}

}  // namespace peal::launch::agents
