// One rank of the tests in this folder. The first argument says what the program does:
//   grid          runs the property grid once, and prints the errors and "done"
//   work          runs all_reduces until one fails, then prints the error, which later calls repeat
//   messages      the same with a ring of sends and receives
//   leave         the same as work, and leaves a forked child behind
//   leave_program the same as work, and leaves behind a program that it has started
//   burst         rank 0 sends more small messages than rank 1 keeps; rank 1 begins late, and
//                 prints by how many MiB its memory grew at most
//   meet          only joins the group, and prints that it has
//   again         joins and leaves a group many times at the same place, and prints "done"
//   throw         works like work, but rank 1 throws in the middle, and main prints the exception
//   tell          the same as throw, but the peers receive the text of the exception
//   terminate     the same as throw, but the exception is not caught
//   count         runs some all_reduces with known sums, and prints "counted"; or, after an error,
//                 the number of all_reduces before it, and the error
//   kill          works like work, but rank 1 is killed in the middle
//   exit          the same, but rank 1 ends with exit code 9
//   freeze        the same, but rank 1 is stopped
//   mismatch      the same, but rank 1 broadcasts while the others reduce
//   inner COMMAND the same as exit, but rank 0 runs COMMAND, another job, in the middle
//   helpers COMMAND
//                 every rank joins the group, runs COMMAND, and leaves
//   absent N      rank N ends with exit code 9 before it joins the group
//   few_files     both ranks make a sub-group while rank 0 may open 0, 1, 2, ... files
//   orphan        as subgroup, and a child of rank 1 lives on
//   subgroup      rank 1 ends with exit code 9, and the others make a group with it
//   abandon       rank 1 leaves with a collective in flight, and the others wait for it
// If PEAL_TEST_TIMEOUT is set, in milliseconds, it is the timeout of each all_reduce. The meeting
// has the timeout of the group, which may be long.
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "peal/base/testing/sanitized.h"
#include "peal/group/tell_peers.h"
#include "peal/init/init.h"
#include "peal/system/fd.h"

#include "tests/collectives/cases.h"

namespace {

using namespace peal;

int run_grid(ProcessGroup& group) {
  std::cout << "working" << std::endl;
  const std::string wrong = testing::run_cases(group, testing::grid_cases(group.size())) +
                            testing::run_cases(group, testing::large_cases(group.size()));
  std::cout << wrong << "done" << std::endl;
  group.destroy();
  return wrong.empty() ? 0 : 1;
}

Timeout timeout_of_operations() {
  const char* const text = std::getenv("PEAL_TEST_TIMEOUT");
  return text != nullptr ? Timeout(std::stol(text)) : kGroupTimeout;
}

void work(ProcessGroup& group) {
  const Timeout timeout = timeout_of_operations();
  std::vector<float> data(5'000, 1);
  while (true) group.all_reduce(data, {.op = ReduceOp::kMax, .timeout = timeout});
}

void exchange_messages(ProcessGroup& group) {
  std::vector<float> out(20'000, 1);
  std::vector<float> in(20'000);
  const Rank next = (group.rank() + 1) % group.size();
  const Rank before = (group.rank() + group.size() - 1) % group.size();
  while (true) {
    const WorkPtr sent = group.isend(out, next);
    group.recv(in, before);
    sent->wait();
  }
}

/// The value in kB of a line of /proc/self/status, such as "VmRSS:".
std::int64_t own_kilobytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kilobytes = 0;
    if (word == name && status >> kilobytes) return kilobytes;
  }
  throw std::runtime_error("no " + name + " in /proc/self/status");
}

constexpr std::size_t kBurst = kSanitized ? 4'000 : 20'000;
constexpr std::size_t kBurstCount = 1'024;
/// This many messages fit into the bound of the receiver.
constexpr std::size_t kSurelyKept = 1'000;
constexpr Tag kBegin{2};

/// The last of the messages waits until the receiver begins.
int send_burst(ProcessGroup& group) {
  std::vector<std::vector<std::int64_t>> messages;
  std::vector<WorkPtr> works;
  for (std::size_t i = 0; i < kBurst; ++i) {
    messages.emplace_back(kBurstCount, static_cast<std::int64_t>(i));
    works.push_back(group.isend(messages.back(), 1));
  }
  for (std::size_t i = 0; i < kSurelyKept; ++i) works[i]->wait();
  if (works.back()->is_completed()) return 1;
  group.send(
      // overtakes the messages that are held back
      std::vector<std::int64_t>{1},
      1,
      {.tag = kBegin});
  for (const WorkPtr& work : works) work->wait();
  return 0;
}

int receive_burst(ProcessGroup& group) {
  const std::int64_t before = own_kilobytes("VmRSS:");
  std::vector<std::int64_t> begin(1);
  group.recv(begin, 0, {.tag = kBegin});
  std::vector<std::int64_t> message(kBurstCount);
  for (std::size_t i = 0; i < kBurst; ++i) {
    group.recv(message, 0);
    if (message.front() != static_cast<std::int64_t>(i) || message.back() != message.front()) {
      return 1;
    }
  }
  std::cout << "grew by " << (own_kilobytes("VmHWM:") - before) / 1024 << " MiB" << std::endl;
  return 0;
}

/// Much longer than the tests wait. A child ends by itself if the test forgets it.
constexpr const char* kChildLives = "300";

/// The child shares all descriptors of this process.
void leave_a_child() {
  if (::fork() != 0) return;
  ::alarm(static_cast<unsigned>(std::stoul(kChildLives)));
  while (true) ::pause();
}

/// The child executes another program.
void leave_a_program() {
  std::string name = "sleep", time = kChildLives;
  char* const arguments[] = {name.data(), time.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, "sleep", nullptr, nullptr, arguments, environ) != 0) {
    throw std::runtime_error("cannot start sleep");
  }
}

/// Works until an error comes. Every later call must throw the same error.
int work_until_it_fails(ProcessGroup& group, void (*what)(ProcessGroup&)) {
  std::cout << "working" << std::endl;
  try {
    what(group);
  } catch (const Error& error) {
    std::cout << "ended with " << error.what() << std::endl;
    try {
      group.barrier();
    } catch (const Error& again) {
      return std::string(again.what()) == error.what() ? 3 : 4;
    }
  }
  return 5;
}

void work_with_bad_luck(ProcessGroup& group) {
  std::vector<float> data(5'000, 1);
  for (int i = 0; i < 10; ++i) group.all_reduce(data, {.op = ReduceOp::kMax});
  if (group.rank() == 1) throw std::runtime_error("out of luck");
  work(group);
}

/// Works. After ten operations rank 1 fails in the way that `state` names, as in the list above.
int work_until_rank_1_fails(ProcessGroup& group, const std::string& state) {
  std::vector<float> data(5'000, 1);
  for (int i = 0; i < 10; ++i) group.all_reduce(data, {.op = ReduceOp::kMax});
  if (group.rank() == 1) {
    if (state == "kill") ::raise(SIGKILL);
    if (state == "exit") ::_exit(9);
    if (state == "freeze") ::raise(SIGSTOP);
    if (state == "mismatch") group.broadcast(data, 0);
  }
  work(group);
  return 0;
}

/// `noexcept` ends the program before the group is left, like a main without a handler.
void work_uncaught() noexcept {
  const rlimit no_core{};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const ProcessGroupPtr group = init_process_group();
  work_with_bad_luck(*group);
}

/// Warns on stderr, as a program should.
int count() {
  InitOptions options;
  options.report = [](std::string_view message) {
    std::cerr << "warning: " + std::string(message) + "\n";
  };
  const ProcessGroupPtr group = init_process_group(options);
  constexpr int kTimes = 20;
  const int ranks = group->size();
  std::vector<float> data(20'000);
  for (int i = 0; i < kTimes; ++i) {
    std::fill(data.begin(), data.end(), static_cast<float>(group->rank() + i));
    try {
      group->all_reduce(data, {.timeout = timeout_of_operations()});
    } catch (const Error& error) {
      std::cout << "ended after " << i << " with " << error.what() << std::endl;
      return 3;
    }
    const auto sum = static_cast<float>(ranks * (ranks - 1) / 2 + ranks * i);
    if (std::any_of(data.begin(), data.end(), [&](float value) { return value != sum; })) {
      std::cout << "a wrong sum" << std::endl;
      return 6;
    }
  }
  group->destroy();
  std::cout << "counted" << std::endl;
  return 0;
}

/// `helper`: a command that joins another job while this rank is in its group.
int run_beside_group(const std::string& helper) {
  const ProcessGroupPtr group = init_process_group();
  if (std::system(helper.c_str()) != 0) return 8;
  group->destroy();
  return 0;
}

int work_with_inner_job(ProcessGroup& group, const std::string& job) {
  if (group.rank() == 0 && std::system(job.c_str()) != 0) return 8;
  return work_until_rank_1_fails(group, "exit");
}

int abandon(ProcessGroup& group) {
  std::vector<float> data(5'000, 1);
  if (group.rank() == 1) {
    const WorkPtr abandoned = group.all_reduce_async(data);
    group.destroy(std::chrono::milliseconds(100));  // throws
  }
  group.recv(data, 1);
  return 0;
}

int make_subgroup(ProcessGroup& group, void (*before_the_end)()) {
  // A rank that ends right after a barrier may still be needed by a rank in that barrier.
  std::vector<int> through = {group.rank()};
  if (group.rank() == 1) {
    for (const Rank other : {0, 2}) group.recv(through, other);
    before_the_end();
    ::_exit(9);
  }
  group.send(through, 1);
  std::cout << "working" << std::endl;
  const std::vector<Rank> all = {0, 1, 2};
  try {
    group.new_group(all);
  } catch (const Error& error) {
    std::cout << "ended with " << error.what() << std::endl;
    return 3;
  }
  return 5;
}

/// Leaves this process only `number` descriptors to open.
class FewFiles {
 public:
  explicit FewFiles(int number) {
    while (true) {
      Fd filler(::dup(STDIN_FILENO));
      if (!filler) break;
      fillers_.push_back(std::move(filler));
    }
    fillers_.resize(fillers_.size() - static_cast<std::size_t>(number));
  }

 private:
  std::vector<Fd> fillers_;
};

/// Makes a sub-group of all ranks, while rank 0 may open at most `files` more files. Null if
/// `split` throws.
ProcessGroupPtr try_split(ProcessGroup& group, int files) {
  std::optional<FewFiles> few;
  if (group.rank() == 0) few.emplace(files);
  try {
    return group.split(0);
  } catch (const Error& error) {
    few.reset();
    if (files == 0) std::cout << "with 0 files: none, " << error.what() << std::endl;
    return nullptr;
  }
}

int make_groups_with_few_files(ProcessGroup& group) {
  constexpr rlimit kLimit{128, 128};
  constexpr int kMostFiles = 40;
  if (group.rank() == 0) ::setrlimit(RLIMIT_NOFILE, &kLimit);
  for (int files = 0; files <= kMostFiles; ++files) {
    const ProcessGroupPtr made = try_split(group, files);
    std::vector<int> ranks = {made ? 1 : 0};
    group.all_reduce(ranks);
    if (ranks[0] == 1) {
      std::cout << "with " << files << " files: half a group" << std::endl;
      return 1;
    }
    if (made) made->all_reduce(ranks);
    if (files == kMostFiles && !made) return 1;
  }
  std::cout << "done" << std::endl;
  return 0;
}

int meet_again_and_again() {
  std::vector<ProcessGroupPtr> groups;
  std::optional<Rank> next_rank;  // some rounds assign other ranks
  for (int i = 0; i < 10; ++i) {
    InitOptions options;
    if (next_rank) options.rank = *next_rank;
    const ProcessGroupPtr group = init_process_group(options);
    std::vector<int> data = {group->rank()};
    group->all_reduce(data, {.op = ReduceOp::kMax});
    if (data[0] != group->size() - 1) return 1;
    if (i % 3 == 0) next_rank = (group->rank() + 1) % group->size();
    if (i % 2 == 0) {  // else the group ends with its last pointer
      group->destroy();
      groups.push_back(group);
    }
  }
  std::cout << "done" << std::endl;
  return 0;
}

int run(const std::string& what, const std::string& more) {
  if (what == "again") return meet_again_and_again();
  if (what == "terminate") work_uncaught();
  if (what == "count") return count();
  if (what == "helpers") return run_beside_group(more);
  if (what == "absent" && more == std::getenv("RANK")) return 9;
  const ProcessGroupPtr group = init_process_group();
  if (what == "throw") work_with_bad_luck(*group);
  if (what == "tell") tell_peers_of_exceptions(*group, [&] { work_with_bad_luck(*group); });
  if (what == "kill" || what == "exit" || what == "freeze" || what == "mismatch") {
    return work_until_rank_1_fails(*group, what);
  }
  if (what == "inner") return work_with_inner_job(*group, more);
  if (what == "grid") return run_grid(*group);
  if (what == "subgroup") return make_subgroup(*group, [] {});
  if (what == "orphan") return make_subgroup(*group, leave_a_child);
  if (what == "few_files") return make_groups_with_few_files(*group);
  if (what == "abandon") return abandon(*group);
  if (what == "burst") return group->rank() == 0 ? send_burst(*group) : receive_burst(*group);
  if (what == "leave") leave_a_child();
  if (what == "leave_program") leave_a_program();
  if (what == "work" || what.starts_with("leave")) return work_until_it_fails(*group, work);
  if (what == "messages") return work_until_it_fails(*group, exchange_messages);
  std::cout << "met as rank " << group->rank() << " of " << group->size() << std::endl;
  return 0;
}

int run_and_report(const std::string& what, const std::string& more) {
  try {
    return run(what, more);
  } catch (const Error& error) {
    std::cout << error.what() << std::endl;
    return 2;
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 7;
  }
}

/// A build that measures coverage writes its counts at the end of the process. A test's limit of
/// file sizes applies to the rank, and not to the counts.
void lift_limit_of_file_sizes() {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace

int main(int count, char** arguments) {
  const int code = run_and_report(arguments[1], count > 2 ? arguments[2] : "");
  lift_limit_of_file_sizes();
  return code;
}
