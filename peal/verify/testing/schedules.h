// Correct schedules of every kind, written by hand. The tests of the verifier change them.
#pragma once

#include <string_view>
#include <utility>

namespace peal::verify {

// Each rank owns a half, and reduces it from both inputs into both outputs.
inline constexpr std::string_view kDirect = R"(
all_reduce ranks=2 per_host=2 count=8 in_place registered
rank 0 span=2
  signal 1
  wait [1] 1
  move input[0:2]@0 -> output[0:2]@0 x4 finish
  signal 2
  wait [1] 2
rank 1 span=2
  signal 1
  wait [0] 1
  move input[0:2]@4 -> output[0:2]@4 x4 finish
  signal 2
  wait [0] 2
)";

// Each rank publishes a copy of its input and reduces everything for itself.
inline constexpr std::string_view kStaged = R"(
all_reduce ranks=2 per_host=2 count=8 stage_limit=8
rank 0 stage=8 span=2
  wait [1] 0
  move input[0]@0 -> stage[0]@0 x8
  signal 1
  wait [1] 1
  move stage[0:2]@0 -> output[0]@0 x8 finish
  signal 2
rank 1 stage=8 span=2
  wait [0] 0
  move input[1]@0 -> stage[1]@0 x8
  signal 1
  wait [0] 1
  move stage[0:2]@0 -> output[1]@0 x8 finish
  signal 2
)";

// Each rank writes its contributions into the stages of the others.
inline constexpr std::string_view kPushed = R"(
all_to_all ranks=2 per_host=2 count=4 stage_limit=8
rank 0 stage=4 span=2
  signal 1
  wait [1] 1
  move input[0]@4 -> stage[1]@0 x4
  signal 2
  move input[0]@0 -> output[0]@0 x4
  wait [1] 2
  move stage[0]@0 -> output[0]@4 x4
rank 1 stage=4 span=2
  signal 1
  wait [0] 1
  move input[1]@0 -> stage[0]@0 x4
  signal 2
  move input[1]@4 -> output[1]@4 x4
  wait [0] 2
  move stage[1]@0 -> output[1]@0 x4
)";

// A ring between three hosts, a block of two elements for each rank.
inline constexpr std::string_view kRing = R"(
all_reduce ranks=3 count=6
rank 0
  move input[0]@4 -> wire[1]@0 x2
  move wire[2]@0, input[0]@2 -> output[0]@2 x2
  move output[0]@2 -> wire[1]@2 x2
  move partial wire[2]@2, input[0]@0 -> output[0]@0 x2 finish
  move output[0]@0 -> wire[1]@4 x2
  move wire[2]@4 -> output[0]@4 x2
  move output[0]@4 -> wire[1]@6 x2
  move wire[2]@6 -> output[0]@2 x2
rank 1
  move input[1]@0 -> wire[2]@0 x2
  move wire[0]@0, input[1]@4 -> output[1]@4 x2
  move output[1]@4 -> wire[2]@2 x2
  move partial wire[0]@2, input[1]@2 -> output[1]@2 x2 finish
  move output[1]@2 -> wire[2]@4 x2
  move wire[0]@4 -> output[1]@0 x2
  move output[1]@0 -> wire[2]@6 x2
  move wire[0]@6 -> output[1]@4 x2
rank 2
  move input[2]@2 -> wire[0]@0 x2
  move wire[1]@0, input[2]@0 -> output[2]@0 x2
  move output[2]@0 -> wire[0]@2 x2
  move partial wire[1]@2, input[2]@4 -> output[2]@4 x2 finish
  move output[2]@4 -> wire[0]@4 x2
  move wire[1]@4 -> output[2]@2 x2
  move output[2]@2 -> wire[0]@6 x2
  move wire[1]@6 -> output[2]@0 x2
)";

// No rank may leave before the root has read all inputs.
inline constexpr std::string_view kReduceToRoot = R"(
reduce ranks=3 per_host=3 root=1 count=5 registered
rank 0 span=1
  signal 1
  wait [1] 1
rank 1 span=1
  wait [0:4:2] 1
  move input[0:3]@0 -> output[1]@0 x5 finish
  signal 1
rank 2 span=1
  signal 1
  wait [1] 1
)";

inline constexpr std::string_view kBroadcast = R"(
broadcast ranks=3 root=1 count=7
rank 0
  move wire[1]@0 -> output[0]@0 x7
rank 1
  move input[1]@0 -> wire[0]@0 x7
  move output[1]@0 -> wire[2]@0 x7
rank 2
  move wire[1]@0 -> output[2]@0 x7
)";

// A broadcast that does not wait for its receivers at the end. The next user of the stage waits for
// them.
inline constexpr std::string_view kStagedBroadcast = R"(
broadcast ranks=3 per_host=3 count=7 stage_limit=7
rank 0 stage=7 span=1
  wait [1:3] 0
  move input[0]@0 -> stage[0]@0 x7
  signal 1
rank 1 stage=7 span=1
  wait [0] 1
  move stage[0]@0 -> output[1]@0 x7
  signal 1
rank 2 stage=7 span=1
  wait [0] 1
  move stage[0]@0 -> output[2]@0 x7
  signal 1
)";

inline constexpr std::string_view kScatter = R"(
scatter ranks=2 root=1 counts=3,4 in_place
rank 0
  move wire[1]@0 -> output[0]@0 x3
rank 1
  move input[1]@0 -> wire[0]@0 x3
)";

inline constexpr std::string_view kGather = R"(
gather ranks=2 root=1 counts=3,4 in_place
rank 0
  move input[0]@0 -> wire[1]@0 x3
rank 1
  move wire[0]@0 -> output[1]@0 x3
)";

inline constexpr std::string_view kAllGather = R"(
all_gather ranks=2 counts=3,4
rank 0
  move input[0]@0 -> wire[1]@0 x3
  move input[0]@0 -> output[0]@0 x3
  move wire[1]@0 -> output[0]@3 x4
rank 1
  move input[1]@0 -> wire[0]@0 x4
  move input[1]@0 -> output[1]@3 x4
  move wire[0]@0 -> output[1]@0 x3
)";

inline constexpr std::string_view kReduceScatter = R"(
reduce_scatter ranks=2 counts=3,4 in_place
rank 0
  move input[0]@3 -> wire[1]@0 x4
  move input[0]@0, wire[1]@0 -> output[0]@0 x3 finish
rank 1
  move input[1]@0 -> wire[0]@0 x3
  move wire[0]@0, input[1]@3 -> output[1]@0 x4 finish
)";

inline constexpr std::string_view kBarrier = R"(
barrier ranks=3 per_host=3
rank 0 span=1
  signal 1
  wait [1:3] 1
rank 1 span=1
  signal 1
  wait [0:4:2] 1
rank 2 span=1
  signal 1
  wait [0:2] 1
)";

// The token's content has no meaning.
inline constexpr std::string_view kTokenBarrier = R"(
barrier ranks=2 stage_limit=2
rank 0 stage=2
  move stage[0]@0 -> wire[1]@0 x1
  move wire[1]@0 -> stage[0]@1 x1
rank 1 stage=2
  move stage[1]@0 -> wire[0]@0 x1
  move wire[0]@0 -> stage[1]@1 x1
)";

inline constexpr std::pair<std::string_view, std::string_view> kRight[] = {
    {"direct", kDirect},
    {"staged", kStaged},
    {"pushed", kPushed},
    {"ring", kRing},
    {"reduce", kReduceToRoot},
    {"broadcast", kBroadcast},
    {"staged broadcast", kStagedBroadcast},
    {"scatter", kScatter},
    {"gather", kGather},
    {"all_gather", kAllGather},
    {"reduce_scatter", kReduceScatter},
    {"barrier", kBarrier},
    {"token barrier", kTokenBarrier}};

}  // namespace peal::verify
