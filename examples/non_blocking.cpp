// Non-blocking point-to-point: isend and irecv return at once with a Work to wait for.
//   build/release/bin/peal run -n 2 build/release/bin/non_blocking
#include <iostream>
#include <string>
#include <vector>

#include "peal/base/error.h"
#include "peal/init/init.h"

int main() try {
  const peal::ProcessGroupPtr group = peal::init_process_group();
  const std::string name = "Rank " + std::to_string(group->rank());
  if (group->size() < 2) {
    std::cout << "This program needs two ranks: start it with peal run -n 2.\n";
    return 0;
  }

  std::vector<float> data = {0};
  peal::WorkPtr work;
  if (group->rank() == 0) {
    data[0] += 1;
    work = group->isend(data, 1);
    std::cout << name + " started sending\n";
  } else if (group->rank() == 1) {
    work = group->irecv(data, 0);
    std::cout << name + " started receiving\n";
  }

  // Until the Work has ended, do not write data (it may not have been sent yet) and do not read it
  // (it may not have arrived yet). Other work can be done here.
  if (work) work->wait();

  std::cout << name + " has data " + std::to_string(data[0]) + "\n";
  return data[0] == (group->rank() < 2 ? 1 : 0) ? 0 : 1;
} catch (const peal::Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
