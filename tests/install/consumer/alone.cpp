// Groups of one rank, with only the files that peal installs: by default, and met in a store of the
// caller. Built and run by tests/install.
#include <vector>

#include "peal/init/init.h"
#include "peal/store/memory_store.h"
#include "peal/store/prefix_store.h"

bool sums(const peal::InitOptions& options) {
  const auto group = peal::init_process_group(options);
  std::vector<float> values = {1, 2, 3};
  group->all_reduce(values);
  return values == std::vector<float>{1, 2, 3} && group->size() == 1;
}

int main() {
  peal::InitOptions in_store;
  in_store.store = peal::store::make_prefix_store(peal::store::make_memory_store(), "first");
  in_store.rank = 0;
  in_store.world_size = 1;
  return sums({}) && sums(in_store) ? 0 : 1;
}
