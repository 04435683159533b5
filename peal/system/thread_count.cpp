#include "peal/system/thread_count.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <thread>

namespace peal {

int thread_count() {
  namespace fs = std::filesystem;
  std::error_code error;
  int count = 0;
  fs::directory_iterator entry("/proc/self/task", error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) ++count;
  return std::max(count, 1);
}

bool has_one_thread(Deadline deadline) {
  while (thread_count() > 1) {
    if (deadline.passed()) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace peal
