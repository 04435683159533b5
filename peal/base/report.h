// Where the library says what the application may want to know. It never prints by itself.
#pragma once

#include <functional>
#include <string_view>

namespace peal {

enum class Severity : unsigned char { kInfo, kWarning };

/// Given by the application; called from any thread, and never with a lock of peal's held.
using Report = std::function<void(Severity, std::string_view message)>;

/// Says nothing.
inline Report silent_report() {
  return [](Severity, std::string_view) {};
}

}  // namespace peal
