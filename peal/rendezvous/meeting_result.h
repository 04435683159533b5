// The result of a meeting, or of making a group; all ranks read the same result. The first rank to
// fail writes its error to the store, and stays until the other ranks have had time to read the
// error. So a rank that notices that another rank has left can find out the reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "peal/base/clock.h"
#include "peal/base/error.h"
#include "peal/base/units.h"
#include "peal/rendezvous/contact.h"
#include "peal/store/store.h"

namespace peal::rendezvous {

/// The key of the result in the store.
inline constexpr const char* kResultKey = "result";

/// The error, or nothing on success.
using MeetingResult = std::optional<Error>;

std::string encode(const MeetingResult& result);
/// Errors: mismatch for anything that `encode` did not make.
MeetingResult decode_result(std::string_view bytes);

/// Proposes a result and returns the result that counts: the first. Errors: of the store.
MeetingResult propose_result(store::Store& store, const MeetingResult& result);

/// How long failed ranks stay for ranks that have not read the result yet. This time is short
/// because all ranks must report a loss within a second.
inline constexpr Timeout kStayAfterLoss{300};

/// Counts this rank among those that have read the result, and waits until `ranks` have.
void stay_until_all_have_read(store::Store& store, int ranks, Deadline deadline);

/// The last step of a rank that joins a group of `ranks`: waits until all ranks have come this far.
/// So either all ranks make the group, or none. While ranks are missing it calls `while_waiting`
/// now and then (look_every); `while_waiting` may throw. After an error the rank calls
/// `agree_on_failure`.
/// `group`: the group's part of the store.
/// Errors: the error of the first rank to fail; timeout, which names the missing ranks; of the
/// store; of `while_waiting`.
/// Cost: three requests to the store.
void agree_on_success(store::Store& group,
                      Rank self,
                      int ranks,
                      Deadline deadline,
                      const WhileWaiting& while_waiting);

/// Every rank calls it after `agree_on_success`. The rank that serves the store stays until all
/// ranks know the success: if that rank ended at once, late ranks would find no store. It stays at
/// most 10 s, and calls `while_waiting` now and then.
/// Errors: of the store; of `while_waiting`.
/// Cost: a request to the store.
enum class Stays : unsigned char { kYes, kNo };
void stay_until_all_know(store::Store& group,
                         Stays stays,
                         int ranks,
                         Deadline deadline,
                         const WhileWaiting& while_waiting);

/// A rank that cannot join a group of `ranks` calls this while its connections to the others are
/// still open. Returns the error to throw. This is `own`, unless `own` only says that others left
/// or did not come; then it is the error of the first rank to fail. Returns nothing if all ranks,
/// including this one, have joined meanwhile: then the group is made.
/// `group`: the group's part of the store. Cost: up to kStayAfterLoss and a moment.
MeetingResult agree_on_failure(store::Store& group, const Error& own, Rank self, int ranks);

/// Throws the error of the first rank that could not join the group, if a rank has reported one.
/// Errors: of the store.
void check_for_failure(store::Store& group);

}  // namespace peal::rendezvous
