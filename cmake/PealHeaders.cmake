# Precompiled headers: one for the libraries, one for their tests. Files must also compile without them, as in
# `scripts/lint`.
set(peal_usual_headers <fmt/format.h> <algorithm> <array> <chrono> <functional> <map> <memory> <optional>
                       <span> <string> <thread> <vector>)

file(CONFIGURE OUTPUT headers.cpp CONTENT "")
add_library(peal_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers.cpp)
target_link_libraries(peal_headers PRIVATE peal_options peal_coverage fmt::fmt)
target_precompile_headers(peal_headers PRIVATE ${peal_usual_headers})

# Tests are optimised a little, and under the sanitizers not at all: more optimisation would cost more compile
# time than it saves test time. Tests are not checked for undefined behaviour, because that would take a third
# more compile time.
if(PEAL_TESTS)
  add_library(peal_test_overrides INTERFACE)
  if(PEAL_SANITIZE)
    target_compile_options(peal_test_overrides INTERFACE -O0 -fno-sanitize=undefined)
  else()
    target_compile_options(peal_test_overrides INTERFACE $<$<CONFIG:Release>:-O1>)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)  # g++ treats the sources inside a unity file as headers
    target_compile_options(peal_test_overrides INTERFACE -Wno-subobject-linkage)
  endif()
  add_library(peal_test_options INTERFACE)
  # The overrides come last: -fno-sanitize works only after -fsanitize.
  target_link_libraries(peal_test_options INTERFACE peal_options peal_test_overrides)

  file(CONFIGURE OUTPUT test_headers.cpp CONTENT "int main() {}\n")
  add_executable(peal_test_headers ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp)
  set_target_properties(peal_test_headers PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  target_link_libraries(peal_test_headers PRIVATE peal_test_options fmt::fmt GTest::gmock)
  target_precompile_headers(peal_test_headers PRIVATE ${peal_usual_headers} <gmock/gmock.h> <gtest/gtest.h>)
endif()
