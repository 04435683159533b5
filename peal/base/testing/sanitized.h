// Whether a sanitizer looks on. Everything takes ten times as long then, so tests that try all
// combinations take a share of them, with every kind of case in it.
#pragma once

namespace peal {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace peal
