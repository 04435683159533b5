// What bare TCP does between hosts, as the floor there: one stream that sends and receives at the
// same time; and for small sizes a ping-pong. Made by `work`
// (worker.h), one worker for each host.
#pragma once

#include <memory>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/bench/flags.h"
#include "peal/bench/subject.h"

namespace peal::bench {

/// Less than the coordinator's own (`patience_for`, calibrate.h), which hears the reason so.
inline constexpr Timeout kStreamPatience = std::chrono::seconds(60);

/// Variants, each for the sizes that it is meant for. "two-way", above 256 bytes: each host sends
/// to the next one what a host must send at least in the operation. "two-threads", where that is 4
/// MiB or more: the same by a thread for each way; the better counts. "round-trip", up to 256
/// bytes: of the operation's bytes, where there are two hosts. All by peal's own congestion control
/// (PEAL_CONGESTION, else the system's). `addresses`: of all hosts, with commas between.
/// `patience`: how long a trial may stand still.
/// Errors: timeout, peer_lost, of the trials too; resource. After one the stream is of no more use.
std::unique_ptr<Subject> make_stream_subject(const std::string& addresses,
                                             Rank host,
                                             Waiting waiting,
                                             Timeout patience = kStreamPatience);

/// What each host must send at least, in bytes, where `hosts` have the same number of ranks; 0: the
/// operation has no two-way stream to be compared with.
Bytes bytes_between_hosts(const Case& c, int hosts);

}  // namespace peal::bench
