// Blocking point-to-point: rank 0 sends a number, the others receive it.
//   build/release/bin/peal run -n 2 build/release/bin/point_to_point
#include <iostream>
#include <string>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

int main() try {
  const peal::ProcessGroupPtr group = peal::init_process_group();

  std::vector<float> data = {0};
  if (group->rank() == 0) {
    data[0] += 1;
    for (peal::Rank to = 1; to < group->size(); ++to) group->send(data, to);
  } else {
    group->recv(data, 0);  // returns when the data has arrived
  }

  std::cout << "Rank " + std::to_string(group->rank()) + " has data " + std::to_string(data[0]) +
                   "\n";
  return data[0] == 1 ? 0 : 1;
} catch (const peal::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
