// Bare TCP between hosts, as the floor there: a stream that sends and receives at the same time,
// and a ping-pong for small sizes. Made by `work` (worker.h), one worker on each host.
#pragma once

#include <memory>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/bench/flags.h"
#include "peal/bench/subject.h"

namespace peal::bench {

/// Shorter than the coordinator's timeout (`time_limit_for`, calibrate.h), so that the coordinator
/// receives the reason.
inline constexpr Timeout kStreamTimeout = std::chrono::seconds(60);

/// Variants:
/// - "two-way", above 256 bytes: each host sends the minimum that a host must send in the operation
///   to the next host;
/// - "two-threads", for 4 MiB or more: the same with a thread for each direction; the faster of the
///   two variants counts;
/// - "round-trip", up to 256 bytes and between two hosts: a ping-pong with the operation's bytes.
/// All variants use peal's congestion control (PEAL_CONGESTION, else the system's default).
/// `addresses`: of all hosts, separated by commas. `timeout`: how long a trial may make no
/// progress.
/// Errors: timeout, peer_lost, also from the trials; resource. After an error the stream is
///   unusable.
std::unique_ptr<Subject> make_stream_subject(const std::string& addresses,
                                             Rank host,
                                             Waiting waiting,
                                             Timeout timeout = kStreamTimeout);

/// The minimum number of bytes that each host must send, if all `hosts` have the same number of
/// ranks. 0 for operations that have no stream as a floor.
Bytes bytes_between_hosts(const Case& c, int hosts);

}  // namespace peal::bench
