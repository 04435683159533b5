// Two ranks from one program, with only the files that peal installs. Built and run by
// tests/install.
#include <vector>

#include "peal/init/init.h"
#include "peal/launch/spawn.h"

int main() {
  const std::vector<int> sums = peal::spawn(2, [](peal::Rank rank) {
    const auto group = peal::init_process_group();
    std::vector<int> value = {rank + 1};
    group->all_reduce(value);
    return value[0];
  });
  return sums == std::vector<int>{3, 3} ? 0 : 1;
}
