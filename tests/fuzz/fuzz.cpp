#include "tests/fuzz/fuzz.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace peal::fuzz {

void require(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "does not hold: " << what << std::endl;
  std::abort();
}

}  // namespace peal::fuzz

/// Called by libFuzzer and by replay.cpp.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  peal::fuzz::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
