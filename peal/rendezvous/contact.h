// Where ranks can be reached, as transport::open says it: published in the store and collected from
// it, for transport::Pending::connect.
#pragma once

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

/// Errors: of the store.
void publish(store::Store& store, Rank rank, const transport::Contact& contact);

/// The contacts of `ranks`, in that order, once all are there.
/// Errors: timeout, which names the ranks that are missing; of the store.
std::vector<transport::Contact> collect(store::Store& store,
                                        std::span<const Rank> ranks,
                                        Deadline deadline);

}  // namespace peal::rendezvous
