// A view of a store that anybody may be able to write to, as torch's TCPStore: every value bears a
// seal of the job's secret, and a value without the right seal is an error. Used by rendezvous for
// a store that the application gives.
#pragma once

#include <memory>

#include "peal/base/clock.h"
#include "peal/base/secret.h"
#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::store {

/// What the seal adds to each value in `base`: a value may be shorter by so much.
inline constexpr Bytes kSealSize{48};

/// Each value becomes, in `base`:
///   nonce | HMAC-SHA256(secret, "peal/store" | key | nonce | value) | value
/// A writer without the secret can neither make a value nor move one to another key. It can still
/// delete a value, and put an earlier value of the same key back: keys whose history matters
/// contain a session that is new for each meeting (rendezvous/registration.h).
///
/// Counters are sealed too, so `add` and `compare_set` read, seal and exchange, and begin again
/// when another rank was faster. `timeout` bounds that. `wait` says that the keys exist, not that
/// their values are sealed; the call that reads a value says that.
/// `secret` may be empty: then nothing is proved, and a rank that has a secret is still noticed.
/// Errors: as Store; usage (a value without this job's seal: names the key, and what to do).
/// Cost: one more request to `base` for add and compare_set, two HMACs for each value.
std::unique_ptr<Store> make_sealed_store(std::shared_ptr<Store> base,
                                         Secret secret,
                                         Timeout timeout);

}  // namespace peal::store
