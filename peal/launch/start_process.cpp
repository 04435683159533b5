#include "peal/launch/start_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "peal/system/pipe.h"

namespace peal::launch {
namespace {

/// The strings for execve: pointers into `texts`, then null.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const RankCommand& rank) {
  std::vector<std::string> entries;
  for (const auto& [name, value] : rank.environment) {
    entries.push_back(fmt::format("{}={}", name, value));
  }
  return entries;
}

/// A set of any number of CPUs (cpu_set_t ends at 1024). Make it before fork, since it allocates.
class CpuSet {
 public:
  explicit CpuSet(const std::vector<int>& cpus) {
    for (const int cpu : cpus) {
      const auto index = static_cast<std::size_t>(cpu);
      if (index / kBits >= words_.size()) words_.resize(index / kBits + 1);
      words_[index / kBits] |= 1UL << index % kBits;
    }
  }
  bool empty() const { return words_.empty(); }
  /// Binding is optional: a rank that cannot be bound runs nevertheless.
  void bind_this_thread() const {
    if (empty()) return;
    ::sched_setaffinity(0,
                        words_.size() * sizeof(unsigned long),
                        reinterpret_cast<const cpu_set_t*>(words_.data()));
  }

 private:
  static constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<unsigned long> words_;
};

/// Returns 0 or errno.
int place_descriptors(const Placement& placement) {
  const std::array from = {placement.in, placement.out, placement.err};
  for (int to = 0; to < 3; ++to) {
    if (::dup2(from[static_cast<std::size_t>(to)], to) < 0) return errno;
  }
  if (placement.inherited >= 0 && ::fcntl(placement.inherited, F_SETFD, 0) != 0) return errno;
  return 0;
}

/// The descriptors, the CPUs, the process group and the signal mask of a rank. Runs in the child,
/// between fork and exec: only async-signal-safe calls. Returns 0 or errno.
int place(const CpuSet& cpus, const Placement& placement, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, placement.parent_death);
  if (::getppid() != parent) return ECANCELED;  // the parent ended before the line above
  if (::setpgid(0, placement.group) != 0) return errno;
  if (const int error = place_descriptors(placement); error != 0) return error;
  cpus.bind_this_thread();
  ::sigprocmask(SIG_SETMASK, &placement.mask, nullptr);
  return 0;
}

struct Image {
  const char* program;
  char* const* arguments;
  char* const* environment;
};

/// Runs in the child, as `place`. Returns errno.
int become(const Image& image, const CpuSet& cpus, const Placement& placement, pid_t parent) {
  if (const int error = place(cpus, placement, parent); error != 0) return error;
  ::execve(image.program, image.arguments, image.environment);
  return errno;
}

/// The child has one thread, so it may allocate.
void replace_environment(const Variables& environment) {
  ::clearenv();
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
}

/// Reads the errno of a child that could not begin; 0 if it could.
int read_error(int pipe) {
  int error = 0;
  while (::read(pipe, &error, sizeof error) < 0 && errno == EINTR) {
  }
  return error;
}

/// Forks, and calls `begin` in the child with the pipe for its errno. `begin` closes this pipe on
/// success, and returns only on failure.
template <class Begin>
StartedProcess start(const Begin& begin) {
  std::optional<Pipe> result = try_make_pipe();
  if (!result) return {.error = errno};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return {.error = errno};
  if (pid == 0) {
    const int error = begin(*result, parent);
    [[maybe_unused]] const auto written = ::write(result->writer.get(), &error, sizeof error);
    ::_exit(127);
  }
  result->writer.reset();
  const int error = read_error(result->reader.get());
  if (error == 0) return {.pid = pid};
  ::waitpid(pid, nullptr, 0);
  return {.error = error};
}

StartedProcess start_function(const RankCommand& rank,
                              const Placement& placement,
                              const RankFunction& function) {
  const CpuSet cpus(rank.cpus);
  return start([&](Pipe& result, pid_t parent) {
    if (const int error = place(cpus, placement, parent); error != 0) return error;
    for (const int fd : placement.closed) ::close(fd);
    replace_environment(rank.environment);
    result = {};
    ::_exit(function(rank.rank));
  });
}

StartedProcess start_program(const RankCommand& rank, const Placement& placement) {
  std::vector<std::string> arguments = rank.arguments;
  std::vector<std::string> environment = environment_of(rank);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  const Image image{rank.program.c_str(), argument_pointers.data(), environment_pointers.data()};
  const CpuSet cpus(rank.cpus);
  return start([&](const Pipe&, pid_t parent) { return become(image, cpus, placement, parent); });
}

}  // namespace

StartedProcess start_process(const RankCommand& rank,
                             const Placement& placement,
                             const RankFunction& function) {
  return function ? start_function(rank, placement, function) : start_program(rank, placement);
}

StartedProcess start_after_end(const RankCommand& rank, int in, int null) {
  Placement placement{.in = in, .out = null, .err = null, .parent_death = 0};
  sigfillset(&placement.mask);
  return start_program({.rank = rank.rank,
                        .program = rank.after_end.front(),
                        .arguments = rank.after_end,
                        .environment = rank.environment,
                        .cpus = {}},
                       placement);
}

}  // namespace peal::launch
