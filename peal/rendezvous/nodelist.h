// Slurm's short forms of lists: "node[003-010,12],gpu7" and "4(x2),2".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace peal::rendezvous {

/// The first host of a node list: "node003". Errors: usage for what is no node list.
std::string first_host(std::string_view nodelist);

/// The number for node `index` in a list of tasks per node: 2 for index 2 in "4(x2),2". Nothing
/// where the list does not say it.
std::optional<int> tasks_on_node(std::string_view tasks_per_node, int index);

}  // namespace peal::rendezvous
