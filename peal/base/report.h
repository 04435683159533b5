// The sink for warnings to the application. The library never prints by itself.
#pragma once

#include <functional>
#include <string_view>

namespace peal {

/// Given by the application. Called from any thread, and never while a lock of peal is held.
using Report = std::function<void(std::string_view warning)>;

/// Drops all warnings.
inline Report silent_report() {
  return [](std::string_view) {};
}

}  // namespace peal
