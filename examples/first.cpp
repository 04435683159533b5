// The first program of docs/guide/groups.md.
#include <iostream>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

int main() try {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  std::vector<float> values = {1, 2, 3};
  group->all_reduce(values);  // from here on every rank has the sum over all ranks
  std::cout << "rank " << group->rank() << " has " << values[2] << std::endl;
  return 0;
} catch (const peal::Error& error) {
  std::cerr << error.what() << std::endl;
  return 1;
}
