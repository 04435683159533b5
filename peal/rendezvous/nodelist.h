// Parses Slurm's short lists: "node[003-010,12],gpu7" and "4(x2),2".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace peal::rendezvous {

/// All hosts of a node list, in its order: node003 to node010, node012 and gpu7. Errors: usage for
/// any other text, and for more than 100,000 hosts.
std::vector<std::string> all_hosts(std::string_view nodelist);

/// The first host of a node list: "node003". Errors: usage for any other text.
std::string first_host(std::string_view nodelist);

/// The number for node `index` in a list of tasks per node: 2 for index 2 in "4(x2),2". Nothing if
/// the list does not contain it.
std::optional<int> tasks_on_node(std::string_view tasks_per_node, int index);

}  // namespace peal::rendezvous
