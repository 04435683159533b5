// Results as JSON lines, one object a result: written by `peal bench --json`, read again as a
// baseline.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "peal/bench/result.h"

namespace peal::bench {

/// op, backend, transport, dtype, np, hosts, bytes, in_place, registered (null where it has no
/// meaning), variant, algorithm (null for others than peal), median_us, p99_us, min_us and max_us
/// (of the rounds' medians), rounds, samples, algbw_gbps and busbw_gbps (10^9 bytes per second),
/// floor_fraction (null without a floor), times_faster (by peer), note; rate, untouched,
/// peal_algorithm and peal_tune (null where they were not given), of the run; between hosts
/// host_tx_bytes and host_qdisc_bytes (null without a rate), the most that a host sends for one
/// operation. One line, with its end.
std::string to_json_line(const Result& result);

}  // namespace peal::bench
