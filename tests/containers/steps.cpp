// A rank that sums numbers until it is killed. After each 100 sums it prints its progress, and how
// many mappings of shared memory it has: ranks on one host must share memory, in containers too.
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

namespace {

int shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:peal") != std::string::npos) ++count;
  }
  return count;
}

}  // namespace

int main() try {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  for (int step = 0;; ++step) {
    std::vector<float> values = {1, 2, 3};
    group->all_reduce(values);
    if (step % 100 == 0) std::cout << "step " << step << " maps " << shared_mappings() << std::endl;
  }
} catch (const peal::Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
