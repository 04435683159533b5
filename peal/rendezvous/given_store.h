// Handles a store that the application gives and to which other programs may be able to write. The
// functions here open or check a store that the ranks can trust. Used by `meet`.
#pragma once

#include <memory>

#include "peal/config/environment.h"
#include "peal/rendezvous/launcher_environment.h"
#include "peal/rendezvous/meet_context.h"
#include "peal/rendezvous/rendezvous.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// Whether the launcher has put all ranks of the request on this machine. torchrun, peal run,
/// mpirun and srun say this in their variables. RANK and similar variables set by hand do not
/// count.
bool is_all_here(const MeetRequest& request,
                 const LauncherEnvironment& launch,
                 const Environment& environment);

/// Opens a store that rank 0 serves at a unix socket of this machine. The socket rejects processes
/// of other users. Only the socket's name goes through `given`. So a program that writes to `given`
/// can prevent the meeting, but can do nothing else.
/// Errors: timeout (rank 0 did not come), peer_lost (rank 0 has ended), usage (the name was
/// changed), resource; of `given`. Throws Interrupted.
std::shared_ptr<store::Store> open_on_this_machine(store::Store& given, const MeetContext& context);

/// To be called before ranks of several machines meet in a given store. Without a secret, rank 0
/// reports that the secret which it makes is only as safe as the store.
/// Errors: usage (TLS without a secret).
void check_secrecy_of_given(const MeetContext& context);

}  // namespace peal::rendezvous
