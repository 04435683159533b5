#include "peal/rendezvous/fail_meeting.h"

#include "peal/rendezvous/contact.h"
#include "peal/rendezvous/meeting_result.h"
#include "peal/rendezvous/registration.h"
#include "peal/rendezvous/session.h"
#include "peal/store/prefix_store.h"
#include "peal/store/sealed_store.h"

namespace peal::rendezvous {

void fail_meeting(std::shared_ptr<store::Store> given,
                  const Secret& secret,
                  Timeout timeout,
                  const Error& error) {
  const std::shared_ptr<store::Store> sealed =
      store::make_sealed_store(std::move(given), secret, timeout);
  const auto meeting = store::make_prefix_store(sealed, kMeetingPrefix);
  if (propose_result(*meeting, error)) return;
  // All ranks have come. They read the group's part of the store now.
  const auto session = current_session(*meeting);
  if (!session) return;
  const std::shared_ptr<store::Store> part =
      store::make_prefix_store(sealed, session_prefix(*session));
  propose_result(*group_store(part, kWorld), error);
}

}  // namespace peal::rendezvous
