// A view of another store under a prefix, so that groups and phases that share a store cannot meet
// in a key.
#pragma once

#include <memory>
#include <string>

#include "peal/store/store.h"

namespace peal::store {

/// Every key becomes "<prefix>/<key>" in `base`; the limit of a key is that of the whole.
std::unique_ptr<Store> make_prefix_store(std::shared_ptr<Store> base, std::string prefix);

}  // namespace peal::store
