// From a store that the application gives, to which other programs may be able to write, to a store
// that the ranks may believe. Used by `meet`.
#pragma once

#include <memory>
#include <string>

#include "peal/base/clock.h"
#include "peal/base/config.h"
#include "peal/base/environment.h"
#include "peal/base/interrupt.h"
#include "peal/base/report.h"
#include "peal/rendezvous/ended_ranks.h"
#include "peal/rendezvous/launch.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Whether the launcher has put all ranks of the wish on this machine: torchrun, peal run, mpirun
/// and srun say so. RANK and its like alone, set by hand, do not count.
bool is_all_here(const Wish& wish, const Launch& launch, const Environment& environment);

/// A store that rank 0 serves at a unix socket of this machine, which refuses processes of other
/// users. Only the socket's name goes through `given`, so a program that writes there can keep the
/// ranks from meeting and do nothing else.
/// Errors: timeout (rank 0 did not come), peer_lost (it has ended), usage (the name was changed),
/// resource; of `given`. Throws Interrupted.
std::shared_ptr<store::Store> open_on_this_machine(store::Store& given,
                                                   const Launch& launch,
                                                   const Config& config,
                                                   const EndedRanks& ended,
                                                   Deadline deadline,
                                                   const Report& report,
                                                   const Interrupt& interrupt);

/// Before ranks of several machines meet in a store that was given. Errors: usage (TLS without a
/// secret). Rank 0 reports that a secret which it makes up is only as safe as the store.
void check_secrecy_of_given(const Launch& launch, const Config& config, const Report& report);

}  // namespace peal::rendezvous
