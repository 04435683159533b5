#include "peal/launch/job/rank_variables.h"

#include <fmt/format.h>

namespace peal::launch {
namespace {

std::string text(int number) { return fmt::format("{}", number); }

}  // namespace

void set_rank_variables(const WorldPlace& place, std::map<std::string, std::string>& variables) {
  variables["RANK"] = variables["HOROVOD_RANK"] = text(place.rank);
  variables["WORLD_SIZE"] = variables["HOROVOD_SIZE"] = text(place.world_size);
  variables["LOCAL_RANK"] = variables["HOROVOD_LOCAL_RANK"] = text(place.local_rank);
  variables["LOCAL_WORLD_SIZE"] = variables["HOROVOD_LOCAL_SIZE"] = text(place.local_size);
  variables["GROUP_RANK"] = variables["NODE_RANK"] = text(place.group);
  variables["GROUP_WORLD_SIZE"] = text(place.groups);
  variables["HOROVOD_CROSS_RANK"] = text(place.cross_rank);
  variables["HOROVOD_CROSS_SIZE"] = text(place.cross_size);
  variables["HOROVOD_HOSTNAME"] = place.host;
}

void set_node_variables(int node, int nodes, std::map<std::string, std::string>& variables) {
  variables["RANK"] = variables["GROUP_RANK"] = variables["NODE_RANK"] = text(node);
  variables["WORLD_SIZE"] = variables["GROUP_WORLD_SIZE"] = text(nodes);
}

void remove_rank_variables(std::map<std::string, std::string>& variables) {
  std::map<std::string, std::string> all = {{"MASTER_ADDR", ""}, {"MASTER_PORT", ""}};
  set_rank_variables({}, all);
  for (const auto& [name, value] : all) variables.erase(name);
}

}  // namespace peal::launch
