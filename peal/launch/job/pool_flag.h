// The value of --worker-pool-spec. Called by gcloud_flags.cpp.
#pragma once

#include <string>

#include "peal/launch/job/document.h"

namespace peal::launch {

/// The pool of "replica-count=2,machine-type=n1-standard-4,container-image-uri=torch". An empty
/// text skips a pool. Errors: usage: a malformed text, an unknown name, and names by which gcloud
/// would build an image.
Value pool_of(const std::string& text, const std::string& here, const Place& place);

}  // namespace peal::launch
