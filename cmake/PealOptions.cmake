# An interface target with the compile options of all files of the project.
add_library(peal_options INTERFACE)
target_compile_features(peal_options INTERFACE cxx_std_20)
target_compile_options(peal_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                                              -Wno-sign-conversion -Wnon-virtual-dtor -Werror)
# With optimisation, g++ 12 wrongly warns of an overlap in "text" + std::string() (GCC bug 105651, fixed in 13),
# under three names, and of uninitialised members of temporaries in braces. Clang and the sanitizers find the
# real errors.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(peal_options INTERFACE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
                                                -Wno-maybe-uninitialized)
endif()
# Rounds each multiplication and addition separately, even on CPUs that could fuse them, for the same bits on
# all CPUs.
target_compile_options(peal_options INTERFACE -ffp-contract=off)
# No program replaces peal's functions when it starts (by LD_PRELOAD), so the compiler may inline them. The
# alignment keeps the time of small operations the same when other code changes. Without it, a change in other
# code has made an all_gather of 8 B slower by an eighth.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(peal_options INTERFACE -fno-semantic-interposition -falign-functions=64
                                                -falign-loops=32)
endif()
target_compile_definitions(peal_options INTERFACE PEAL_SANITIZERS="${PEAL_SANITIZE}")
if(PEAL_SANITIZE)
  target_compile_options(peal_options INTERFACE -fsanitize=${PEAL_SANITIZE}
                                                -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(peal_options INTERFACE -fsanitize=${PEAL_SANITIZE})
endif()
# Coverage counts only the libraries. Threads may lose counts, so a count may be too low. A process writes its
# counts when it exits; a killed process writes no counts. gcov (--coverage) would also write before exec, but a
# child of a process with threads must not allocate there (0034).
add_library(peal_coverage INTERFACE)
if(PEAL_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL Clang)
    message(FATAL_ERROR "PEAL_COVERAGE needs clang: configure with -DCMAKE_CXX_COMPILER=clang++")
  endif()
  # Only tests write counts, because ctest sets LLVM_PROFILE_FILE. Without a file name here, ccache would not reuse
  # the results of another checkout.
  target_compile_options(peal_coverage INTERFACE -fprofile-instr-generate=/dev/null -fcoverage-mapping
                                                 -fcoverage-compilation-dir=.)
  target_link_options(peal_options INTERFACE -fprofile-instr-generate)
endif()
