// Whether this process is a rank of the launcher's job, or of another job that was started inside a
// rank, for example by torchrun, peal.spawn or torch.multiprocessing in the program. The inner job
// must not use the records and faults of the launcher's job. Called by init.cpp.
#pragma once

#include "peal/config/environment.h"
#include "peal/config/launch_mark.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal::init {

/// Decides by the launcher's mark, and by whether another living process has this rank's record.
Relation relation_of(const rendezvous::MeetRequest& request, const Environment& environment);

}  // namespace peal::init
