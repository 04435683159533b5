// The record of this rank's last operations (observe/flight_recorder.h): made when the ranks have
// met or, by a rank that does not get so far, to say why. init.cpp calls it.
#pragma once

#include <memory>

#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/error.h"
#include "peal/base/report.h"
#include "peal/observe/flight_recorder.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal::init {

/// In PEAL_FLIGHT_DIR; or in memory, with a warning, where there is no room for a file or where the
/// record is another living process's. No rank has to end for want of a record.
/// Errors: resource (no memory).
std::shared_ptr<observe::FlightRecorder> make_recorder(const Config& config,
                                                       const rendezvous::Meeting& meeting,
                                                       const Report& report);

/// Leaves a record that says nothing but why this rank cannot join the job, for `peal why`. None
/// where PEAL_FLIGHT_DIR is not set or nobody says which rank this is; and a record stays with
/// which a process goes on, this one or another of the same rank.
void record_failed_start(const rendezvous::Wish& wish,
                         const Environment& environment,
                         const Error& why) noexcept;

}  // namespace peal::init
