// The value of --worker-pool-spec. Called by gcloud_flags.cpp.
#pragma once

#include <string>

#include "peal/launch/job/document.h"

namespace peal::launch {

/// The pool of "replica-count=2,machine-type=n1-standard-4,container-image-uri=torch". An empty
/// text skips a pool. Errors: usage: a text of another form, an unknown name, names that need an
/// image to be built.
Value pool_of(const std::string& text, const std::string& here, const Place& place);

}  // namespace peal::launch
