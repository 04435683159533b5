// The ranks' contacts: how other ranks can reach them. transport::open makes a contact, the rank
// publishes it in the store, and the other ranks collect it for
// transport::PendingTransport::connect.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "peal/base/clock.h"
#include "peal/base/units.h"
#include "peal/store/store.h"
#include "peal/transport/link/contact.h"

namespace peal::rendezvous {

std::string encode(const transport::Contact& contact);
/// Errors: mismatch for anything that `encode` did not make.
transport::Contact decode(std::string_view bytes);

/// Decodes the contact or the last will of `rank`.
/// Errors: mismatch, as `decode`; peer_lost (a last will: the rank ended before it published).
transport::Contact decode_of(Rank rank, std::string_view bytes);

/// The group of all ranks of the job.
inline constexpr const char* kWorld = "world";

/// The part of the job's store in which the ranks of a group publish their contacts.
std::unique_ptr<store::Store> group_store(std::shared_ptr<store::Store> store,
                                          const std::string& group);

/// Leaves a last will: if this process ends before it has published its contact, `collect` fails at
/// once on every rank. `process` is for messages: "process 7 on b".
/// Errors: of the store.
void set_contact_will(store::Store& group, Rank rank, const std::string& process);

/// Errors: of the store.
void publish(store::Store& group, Rank rank, const transport::Contact& contact);

/// Called with the missing ranks, or with an empty list if the store does not answer.
using WhileWaiting = std::function<void(std::span<const Rank> missing)>;

/// Waits for the contacts of `ranks` and returns them in that order. While some are missing,
/// `collect` calls `while_waiting` now and then (look_every); `while_waiting` may throw.
/// Errors: timeout, which names the missing ranks, or says that the store does not answer (at most
/// a second after the deadline); peer_lost, which names a rank that ended after its
/// `set_contact_will` and before it published; of the store; of `while_waiting`.
std::vector<transport::Contact> collect(
    store::Store& group,
    std::span<const Rank> ranks,
    Deadline deadline,
    const WhileWaiting& while_waiting = [](std::span<const Rank>) {});

}  // namespace peal::rendezvous
