// One rank of many on one machine, for crowd_test.cpp. It joins the group, runs every operation for
// small and large buffers, foreign and registered, checks each result, and leaves. Rank 0 prints
// the times, and how much memory the ranks use for staging.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/init/init.h"

#include "tests/collectives/cases.h"

namespace {

using namespace peal;
using testing::Case;

/// Every operation once with a few elements, and in both kinds of memory with 1 MiB: the size of a
/// buffer, or of the blocks of all ranks together.
std::vector<Case> cases_for(int ranks) {
  constexpr std::int64_t kSmall = 5;
  constexpr std::int64_t kLarge = (1 << 20) / sizeof(std::int32_t);
  std::vector<Operation> operations(kAllCollectives.begin(), kAllCollectives.end());
  operations.push_back(Operation::kSend);
  std::vector<Case> cases;
  for (const Operation operation : operations) {
    const bool is_whole = operation == Operation::kBroadcast || operation == Operation::kReduce ||
                          operation == Operation::kAllReduce || operation == Operation::kSend;
    Case one{.operation = operation, .dtype = DType::kI32, .count = kSmall, .root = ranks / 2};
    cases.push_back(one);
    one.count = is_whole ? kLarge : kLarge / ranks;
    cases.push_back(one);
    one.memory = Case::Memory::kRegistered;
    cases.push_back(one);
  }
  return cases;
}

/// How many bytes of a mapping's file are allocated, by any process.
std::int64_t bytes_there(std::uintptr_t begin, std::uintptr_t end) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> is_there((end - begin) / page);
  if (::mincore(reinterpret_cast<void*>(begin), end - begin, is_there.data()) != 0) return -1;
  return std::count_if(is_there.begin(), is_there.end(), [](unsigned char b) { return b & 1; }) *
         static_cast<std::int64_t>(page);
}

/// How much memory some ranks of the machine stage in and receive through. Only some, because the
/// system takes milliseconds for each.
std::vector<std::int64_t> staging() {
  constexpr std::size_t kSome = 16;
  std::vector<std::int64_t> some;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; some.size() < kSome && std::getline(maps, line);) {
    if (line.find("/memfd:peal segment") == std::string::npos) continue;
    std::size_t dash = 0;
    const std::uintptr_t begin = std::stoul(line, &dash, 16);
    some.push_back(bytes_there(begin, std::stoul(line.substr(dash + 1), nullptr, 16)));
  }
  return some;
}

double seconds_since(TimePoint start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int run() {
  const TimePoint start = Clock::now();
  const ProcessGroupPtr group = init_process_group();
  const double met = seconds_since(start);
  const std::string wrong = testing::run_cases(*group, cases_for(group->size()));
  group->barrier();
  const double worked = seconds_since(start) - met;
  if (group->rank() == 0) {
    const std::vector<std::int64_t> bytes = staging();
    std::cout << fmt::format("met after {:.1f} s, worked for {:.1f} s, staged at most {} bytes\n",
                             met,
                             worked,
                             bytes.empty() ? -1 : *std::max_element(bytes.begin(), bytes.end()));
  }
  std::cout << wrong << std::flush;
  group->destroy();
  return wrong.empty() ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 2;
  }
}
