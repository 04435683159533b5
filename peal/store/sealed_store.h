// A view of a store to which other programs may be able to write, such as torch's TCPStore. Every
// value carries a seal made with the job's secret. A value without the right seal is an error. Used
// by rendezvous for a store that the application gives.
#pragma once

#include <memory>

#include "peal/base/clock.h"
#include "peal/base/secret.h"
#include "peal/base/units.h"
#include "peal/store/store.h"

namespace peal::store {

/// The size that the seal adds to each value in `base`. The limit for values shrinks by this size.
inline constexpr Bytes kSealSize{48};

/// Each value becomes, in `base`:
///   nonce | HMAC-SHA256(secret, "peal/store" | key | nonce | value) | value
/// A writer without the secret can neither make a value nor move one to another key. Such a writer
/// can still delete a value, or put back an earlier value of the same key. So keys whose history
/// matters contain a session name that is new for each meeting (rendezvous/session.h).
///
/// Counters are sealed too. So `add` and `compare_set` read, seal and exchange the value, and retry
/// if another rank was faster; `timeout` bounds the retries. `wait` only checks that the keys
/// exist. The call that reads a value checks the seal.
/// `secret` may be empty. Then the seal proves nothing, but a rank with a secret is still detected.
/// Errors: as Store; usage (a value without this job's seal: names the key, and what to do).
/// Cost: one more request to `base` for add and compare_set, two HMACs for each value.
std::unique_ptr<Store> make_sealed_store(std::shared_ptr<Store> base,
                                         Secret secret,
                                         Timeout timeout);

}  // namespace peal::store
