// A group of one, with nothing but what peal installs. Built and run by tests/install.
#include <vector>

#include "peal/init/init.h"

int main() {
  const auto group = peal::init_process_group();
  std::vector<float> values = {1, 2, 3};
  group->all_reduce(values);
  return values == std::vector<float>{1, 2, 3} && group->size() == 1 ? 0 : 1;
}
