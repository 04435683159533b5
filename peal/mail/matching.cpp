#include "peal/mail/matching.h"

#include <algorithm>

namespace peal::mail {
namespace {

bool matches(const Envelope& wanted, Rank from, Tag tag) {
  return (wanted.peer == kAnySource || wanted.peer == from) && wanted.tag == tag;
}

}  // namespace

std::optional<Receive> Matching::take(Rank from, Tag tag) {
  const auto found = std::find_if(receives_.begin(), receives_.end(), [&](const Receive& receive) {
    return matches(receive.envelope, from, tag);
  });
  if (found == receives_.end()) return std::nullopt;
  std::optional<Receive> receive = std::move(*found);
  receives_.erase(found);
  return receive;
}

bool Matching::expects(Rank source) const {
  return std::any_of(receives_.begin(), receives_.end(), [&](const Receive& receive) {
    return receive.envelope.peer == source;
  });
}

Matching::Position Matching::find(const Envelope& wanted) {
  return std::find_if(arrivals_.begin(), arrivals_.end(), [&](const Arrival& arrival) {
    return !arrival.claimed_by && matches(wanted, arrival.from, arrival.frame.tag);
  });
}

bool Matching::has_claim_on(Rank from) const {
  return std::any_of(arrivals_.begin(), arrivals_.end(), [&](const Arrival& arrival) {
    return arrival.from == from && arrival.claimed_by;
  });
}

void Matching::clear() {
  receives_.clear();
  arrivals_.clear();
}

}  // namespace peal::mail
