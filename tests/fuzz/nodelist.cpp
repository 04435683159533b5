// Slurm's lists of nodes and of tasks.
#include "peal/rendezvous/nodelist.h"

#include <limits>

#include "tests/fuzz/fuzz.h"

void peal::fuzz::check(std::string_view input) {
  using namespace rendezvous;
  const auto host = unless_refused(ErrorKind::kUsage, [&] { return first_host(input); });
  if (host) require(!host->empty(), "a name");
  for (const int index : {0, 1, 7, std::numeric_limits<int>::max()}) tasks_on_node(input, index);
}
