// A view of another store under a prefix, so that groups and phases can share a store without using
// the same keys.
#pragma once

#include <memory>
#include <string>

#include "peal/store/store.h"

namespace peal::store {

/// Every key becomes "<prefix>/<key>" in `base`. The limit for keys counts the whole text.
std::unique_ptr<Store> make_prefix_store(std::shared_ptr<Store> base, std::string prefix);

}  // namespace peal::store
