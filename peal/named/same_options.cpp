#include "peal/named/same_options.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "peal/base/error.h"

namespace peal::named {

void require_same(ProcessGroup& group, const Options& options) {
  struct Value {
    const char* name;
    std::int64_t value;
  };
  const std::array values = {
      Value{"fusion_threshold (HOROVOD_FUSION_THRESHOLD)", options.fusion_threshold.value},
      Value{"cache_capacity (HOROVOD_CACHE_CAPACITY)", options.cache_capacity},
      Value{"group_fusion (HOROVOD_DISABLE_GROUP_FUSION)",
            static_cast<std::int64_t>(options.group_fusion)},
      Value{"while_joined", static_cast<std::int64_t>(options.while_joined)},
      Value{"the stall check (HOROVOD_STALL_CHECK_DISABLE)", options.stall_warning.count() > 0},
  };
  std::vector<std::int64_t> mine;
  for (const Value& value : values) mine.push_back(value.value);
  std::vector<std::int64_t> all(mine.size() * static_cast<std::size_t>(group.size()));
  group.all_gather(mine, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t value = i % values.size();
    if (all[i] == all[value]) continue;
    throw Error(ErrorKind::kMismatch,
                fmt::format("ranks have different settings: {} is {} on rank {}, but {} on rank "
                            "{}; use the same on all ranks",
                            values[value].name,
                            all[value],
                            group.global_rank(0),
                            all[i],
                            group.global_rank(static_cast<Rank>(i / values.size()))));
  }
}

}  // namespace peal::named
