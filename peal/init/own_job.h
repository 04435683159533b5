// Whether this process is a rank of the job that a launcher has started, or of a job inside a rank:
// a torchrun, peal.spawn or torch.multiprocessing of the program's own. The records and the faults
// of the launcher's job are not for the inner job. init.cpp calls it.
#pragma once

#include "peal/base/environment.h"
#include "peal/base/launch_mark.h"
#include "peal/rendezvous/rendezvous.h"

namespace peal::init {

/// By the launcher's mark, and by whether another living process has the record of this rank.
Kinship kinship_of(const rendezvous::Wish& wish, const Environment& environment);

}  // namespace peal::init
