// A store for ranks that are threads of one process, and for a group of one.
#pragma once

#include <memory>

#include "peal/store/store.h"

namespace peal::store {

/// Makes an empty store. All its users share the same object.
std::unique_ptr<Store> make_memory_store();

}  // namespace peal::store
