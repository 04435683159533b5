// Where ranks can be reached, as transport::open says it: published in the store and collected from
// it, for transport::Pending::connect.
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
#include "peal/transport/contact.h"

namespace peal::rendezvous {

std::string encode(const transport::Contact& contact);
/// Errors: mismatch for anything that `encode` did not make.
transport::Contact decode(std::string_view bytes);

/// What `rank` has published, or its will. Errors: mismatch, as `decode`; peer_lost (the rank ended
/// before it published).
transport::Contact decode_of(Rank rank, std::string_view bytes);

/// The group of all ranks of the job.
inline constexpr const char* kWorld = "world";

/// The part of the job's store where the ranks of a group say where they listen.
std::unique_ptr<store::Store> group_store(std::shared_ptr<store::Store> store,
                                          const std::string& group);

/// From here on `collect` ends, on every rank, as soon as this process does before it has published
/// its contact. `who`, for messages: "process 7 on b". Errors: of the store.
void promise(store::Store& group, Rank rank, const std::string& who);

/// Errors: of the store.
void publish(store::Store& group, Rank rank, const transport::Contact& contact);

/// Called with the ranks that have not come yet; none where the store, which knows it, stands
/// still.
using Look = std::function<void(std::span<const Rank> missing)>;

/// The contacts of `ranks`, in that order, once all are there. While some are missing it calls
/// `look` every 200 ms, which may throw.
/// Errors: timeout, which names the ranks that are missing, or says that the store stands still (a
/// second after the deadline at the latest); peer_lost, which names one that has
/// ended before it kept its promise; of the store; of `look`.
std::vector<transport::Contact> collect(
    store::Store& group,
    std::span<const Rank> ranks,
    Deadline deadline,
    const Look& look = [](std::span<const Rank>) {});

}  // namespace peal::rendezvous
