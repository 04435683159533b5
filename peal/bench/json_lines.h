// Results as JSON lines, one object for each result. `peal bench --json` writes them; `--baseline`
// reads them.
#pragma once

#include <string>

#include "peal/bench/result.h"

namespace peal::bench {

/// One line, with its end. Fields:
/// - the case: op, backend, transport, dtype, np, hosts, bytes, in_place, variant; registered and
///   algorithm (null for other backends than peal);
/// - times: median_us, p99_us, min_us and max_us (of the rounds' medians), rounds, samples;
/// - algbw_gbps and busbw_gbps (10^9 bytes per second), floor_fraction (null without a floor),
///   times_faster (by peer), note;
/// - the run: rate, congestion, untouched, peal_algorithm, peal_tune and peal_stage (null if not
///   given);
/// - between hosts: host_tx_bytes and host_qdisc_bytes (null without a rate), the bytes that the
///   busiest host sends for one operation.
std::string to_json_line(const Result& result);

}  // namespace peal::bench
