// One rank of many groups that live at the same time, for live_groups_test.cpp. The argument is the
// number of groups of all ranks. In each group the rank runs a small all_reduce, a barrier and a
// message. Then it measures the cost of the live groups. Rank 0 prints the largest number of
// descriptors and threads of any rank, and the bytes of shared memory of all ranks together.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "peal/base/clock.h"
#include "peal/init/init.h"

namespace {

using namespace peal;

std::int64_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder),
                       std::filesystem::directory_iterator());
}

/// The bytes of a mapping's file that are in memory, whichever rank touched them.
std::int64_t bytes_there(std::uintptr_t begin, std::uintptr_t end) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> is_there((end - begin) / page);
  if (::mincore(reinterpret_cast<void*>(begin), end - begin, is_there.data()) != 0) {
    throw std::runtime_error("mincore failed");
  }
  return std::count_if(is_there.begin(), is_there.end(), [](unsigned char b) { return b & 1; }) *
         static_cast<std::int64_t>(page);
}

/// Every rank maps the segments of all ranks. Each segment is counted by one rank only.
std::int64_t bytes_of_segments(Rank rank, int ranks) {
  std::map<std::uint64_t, std::pair<std::uintptr_t, std::uintptr_t>> mappings;  // by inode
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:peal segment") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, flags, offset, device;
    std::uint64_t inode = 0;
    words >> range >> flags >> offset >> device >> inode;
    const std::size_t dash = range.find('-');
    mappings[inode] = {std::stoul(range, nullptr, 16),
                       std::stoul(range.substr(dash + 1), nullptr, 16)};
  }
  std::int64_t bytes = 0;
  std::size_t turn = 0;
  for (const auto& [inode, range] : mappings) {
    if (turn++ % static_cast<std::size_t>(ranks) != static_cast<std::size_t>(rank)) continue;
    bytes += bytes_there(range.first, range.second);
  }
  return bytes;
}

/// The bytes of the files of shared memory that this rank has open: its arenas.
std::int64_t bytes_of_open_memory() {
  std::int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat file {};
    if (gone || target.find("/memfd:") != 0 || ::stat(entry.path().c_str(), &file) != 0) continue;
    bytes += static_cast<std::int64_t>(file.st_blocks) * 512;
  }
  return bytes;
}

/// Returns whether all results were right.
bool use(ProcessGroup& group) {
  std::vector<std::int32_t> sum = {group.rank(), 1};
  group.all_reduce(sum);
  group.barrier();
  const int size = group.size();
  const std::vector<std::int32_t> sent = {group.rank()};
  std::vector<std::int32_t> received = {-1};
  group.send(sent, (group.rank() + 1) % size);
  const Rank before = (group.rank() + size - 1) % size;
  group.recv(received, before);
  return sum[0] == size * (size - 1) / 2 && sum[1] == size && received[0] == before;
}

/// The descriptors by kind: "socket 7, eventfd 3, ...".
std::string open_kinds() {
  std::map<std::string, int> kinds;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    std::string kind = std::filesystem::read_symlink(entry.path(), gone).string();
    ++kinds[kind.substr(0, kind.find('[') == std::string::npos ? 24 : kind.find('['))];
  }
  std::string text;
  for (const auto& [kind, count] : kinds) text += fmt::format(" {} {},", kind, count);
  return text;
}

int run(int count) {
  const TimePoint start = Clock::now();
  const ProcessGroupPtr world = init_process_group();
  std::vector<ProcessGroupPtr> groups;
  bool well = true;
  for (int i = 0; i < count; ++i) {
    groups.push_back(world->split(0));
    well &= use(*groups.back());
  }
  for (const ProcessGroupPtr& group : groups) well &= use(*group);  // all of them are alive
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  world->barrier();
  std::vector<std::int64_t> most = {entries_of("/proc/self/fd"), entries_of("/proc/self/task")};
  std::vector<std::int64_t> all = {
      bytes_of_segments(world->rank(), world->size()) + bytes_of_open_memory(), well ? 0 : 1};
  world->all_reduce(most, {.op = ReduceOp::kMax});
  world->all_reduce(all);
  if (world->rank() == 0) {
    std::cout << fmt::format(
                     "descriptors: {}\nthreads: {}\nshared bytes: {}\nwrong: {}\nopen:{}\n"
                     "after {:.1f} s\n",
                     most[0],
                     most[1],
                     all[0],
                     all[1],
                     open_kinds(),
                     seconds)
              << std::flush;
  }
  for (const ProcessGroupPtr& group : groups) group->destroy();
  world->destroy();
  return well ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count == 2 ? std::stoi(arguments[1]) : 1);
  } catch (const std::exception& error) {
    std::cout << error.what() << std::endl;
    return 2;
  }
}
