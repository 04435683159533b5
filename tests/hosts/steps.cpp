// The job of drills_test.py: an endless training in attempt 0, three steps in later attempts. Rank
// 0 writes a line for each step.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

int main() try {
  const char* const text = std::getenv("PEAL_ATTEMPT");
  const std::string attempt = text == nullptr ? "0" : text;
  const peal::ProcessGroupPtr group = peal::init_process_group();
  for (int step = 1; attempt == "0" || step <= 3; ++step) {
    std::vector<float> values(1000, 1);
    group->all_reduce(values);
    if (values.front() != static_cast<float>(group->size())) return 2;
    if (group->rank() == 0) std::cout << "attempt " << attempt << " step " << step << std::endl;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return 0;
} catch (const peal::Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
