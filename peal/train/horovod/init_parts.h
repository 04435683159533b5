// How init evaluates its options, its settings and the environment. Used by context.cpp.
#pragma once

#include <string>
#include <vector>

#include "peal/config/environment.h"
#include "peal/init/init.h"
#include "peal/named/named_operations.h"
#include "peal/rendezvous/elastic_assignment.h"
#include "peal/train/horovod/init.h"
#include "peal/train/horovod/settings.h"
#include "peal/train/horovod/topology.h"

namespace peal::hvd {

/// "[0, 2]"
std::string text_of(const std::vector<Rank>& ranks);

/// The environment of this process, without HOROVOD_RANK and similar variables of an outer job. A
/// rank of `peal run` may start an inner job, for example by torchrun, which sets only RANK.
Environment environment_of_rank();

/// The host of this rank, and its numbers if the launcher gives them.
Place own_place(const InitOptions& options,
                const Settings& settings,
                const Environment& environment);

/// The place that the driver of an elastic job gives to this process in the next round.
void set_elastic_place(Settings& settings, const rendezvous::ElasticAssignment& place);

/// How the ranks meet: as in the environment, with the ranks of `options`.
/// Errors: usage (this rank is not among them).
peal::InitOptions meeting_of(const InitOptions& options, const Settings& settings);

named::Options named_options_of(const InitOptions& options, const Settings& settings);

}  // namespace peal::hvd
