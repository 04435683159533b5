// Ends a meeting from outside, for a driver that knows that a rank cannot come. Used by the driver
// of an elastic job (launch/elastic).
#pragma once

#include <memory>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/secret.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// The ranks that meet in `given`, or make the group of all ranks there, throw `error`. Without
/// effect if they have made this group. Without it, the ranks would wait until their deadline for a
/// rank that ended before its claim, since a last will comes with the claim.
/// `given`: the store that the ranks were given. `secret`: of the job; `timeout` as in
/// make_sealed_store.
/// Errors: of the store; usage (a value without the job's seal).
void fail_meeting(std::shared_ptr<store::Store> given,
                  const Secret& secret,
                  Timeout timeout,
                  const Error& error);

}  // namespace peal::rendezvous
