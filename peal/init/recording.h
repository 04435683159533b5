// Makes the record of this rank's last operations (observe/flight_recorder.h): after the ranks have
// met, or with the error if a rank cannot join. Called by init.cpp.
#pragma once

#include <memory>

#include "peal/base/error.h"
#include "peal/base/report.h"
#include "peal/config/config.h"
#include "peal/config/environment.h"
#include "peal/observe/flight_recorder.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal::init {

/// A record in PEAL_FLIGHT_DIR; or in memory, with a warning, if there is no space for a file or
/// the file is the record of another living process. A rank never fails because of a missing record
/// file.
/// Errors: resource (no memory).
std::shared_ptr<observe::FlightRecorder> make_recorder(const Config& config,
                                                       const rendezvous::Meeting& meeting,
                                                       const Report& report);

/// Makes a record that only says why this rank cannot join the job, for `peal why`. Does nothing if
/// PEAL_FLIGHT_DIR is not set or the number of this rank is not known. Does not replace the record
/// of a running process, of this one or another with the same rank.
void record_failed_start(const rendezvous::MeetRequest& request,
                         const Environment& environment,
                         const Error& why) noexcept;

}  // namespace peal::init
