# peal_compile_together(target): compiles up to eight of its sources as one, in half the time. Names in their
# anonymous namespaces must differ. -DCMAKE_UNITY_BUILD=OFF compiles each source separately.
function(peal_compile_together target)
  if(NOT DEFINED CMAKE_UNITY_BUILD)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON)
  endif()
endfunction()

# peal_module(base SOURCES error.cpp ... HEADERS error.h ... TESTS error_test.cpp ... LINKS peal::net ...)
#
# One folder under peal/ is one static library `peal_<name>`, with the alias peal::<name>, and one test
# program `<name>_test`. The link graph is the include graph: the folder may include only the folders in
# LINKS. HEADERS are the public headers, which are installed. PRECOMPILED: the target whose precompiled header it
# shares; the default is peal_headers. ONE_THREAD, PURE: see peal_test.
function(peal_module name)
  cmake_parse_arguments(ARG "ONE_THREAD;PURE" "PRECOMPILED" "SOURCES;HEADERS;TESTS;LINKS;TEST_LINKS" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED peal_headers)
  endif()
  string(REPLACE "/" "_" target ${name})
  add_library(peal_${target} STATIC ${ARG_SOURCES})
  add_library(peal::${target} ALIAS peal_${target})
  set_target_properties(peal_${target} PROPERTIES EXPORT_NAME ${target})
  target_include_directories(peal_${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                   $<INSTALL_INTERFACE:include>)
  if(ARG_HEADERS)
    target_sources(peal_${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                                         FILES ${ARG_HEADERS})
  endif()
  target_compile_features(peal_${target} PUBLIC cxx_std_20)
  target_link_libraries(peal_${target} PUBLIC ${ARG_LINKS} PRIVATE fmt::fmt $<BUILD_INTERFACE:peal_options>
                                                        $<BUILD_INTERFACE:peal_coverage>)
  target_precompile_headers(peal_${target} REUSE_FROM ${ARG_PRECOMPILED})
  if(NOT PEAL_SANITIZE)  # installed libraries compile file by file
    set_target_properties(peal_${target} PROPERTIES UNITY_BUILD OFF)
  endif()
  set_property(GLOBAL APPEND PROPERTY PEAL_MODULES peal_${target})
  if(ARG_PURE AND PEAL_SANITIZE)
    set_target_properties(peal_${target} PROPERTIES EXCLUDE_FROM_ALL ON)  # built if a program links it
  endif()
  if(PEAL_TESTS AND ARG_TESTS)
    set(kind "")
    if(ARG_PURE)
      set(kind PURE BUSY)
    elseif(ARG_ONE_THREAD)
      set(kind ONE_THREAD)
    endif()
    peal_test(${target}_test ${kind} SOURCES ${ARG_TESTS} LINKS peal::${target} ${ARG_TEST_LINKS})
  endif()
endfunction()

# peal_train_module(ddp SOURCES ... HEADERS ... LINKS ... TESTS ... TEST_LINKS ...): a folder under peal/train/, which
# uses LibTorch: the library `peal_train_ddp` and the test program `train_ddp_test`. NO_TORCH: its sources that
# include no header of LibTorch. BUSY: see peal_test.
function(peal_train_module name)
  cmake_parse_arguments(ARG "BUSY" "" "SOURCES;HEADERS;LINKS;TESTS;TEST_LINKS;NO_TORCH" ${ARGN})
  peal_module(train/${name} SOURCES ${ARG_SOURCES} HEADERS ${ARG_HEADERS} LINKS ${ARG_LINKS}
              PRECOMPILED peal_train_headers)
  target_link_libraries(peal_train_${name} PUBLIC peal::torch)
  if(ARG_NO_TORCH)
    set_source_files_properties(${ARG_NO_TORCH} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endif()
  set_property(GLOBAL APPEND PROPERTY PEAL_TRAIN_MODULES peal_train_${name})
  if(PEAL_TESTS AND ARG_TESTS)
    set(kind "")
    if(ARG_BUSY)
      set(kind BUSY)
    endif()
    peal_test(train_${name}_test ${kind} SOURCES ${ARG_TESTS}
              LINKS peal::train_${name} peal::init ${ARG_TEST_LINKS} PRECOMPILED peal_train_test_headers)
  endif()
endfunction()

# peal_time_limit(name): ends the ctest test `name` after 20 minutes. The longest test takes less than three on an
# idle machine with two cores.
function(peal_time_limit name)
  set_tests_properties(${name} PROPERTIES TIMEOUT 1200)
  peal_count_apart(${name})
endfunction()

# peal_count_apart(name): for line coverage, the test writes its counts into separate files. Two programs may
# have the same signature (%m), and counts of different programs cannot be merged.
function(peal_count_apart name)
  if(PEAL_COVERAGE)
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT_MODIFICATION
      LLVM_PROFILE_FILE=set:${PROJECT_BINARY_DIR}/coverage/counts/${name}-%4m.profraw)
  endif()
endfunction()

# peal_busy(name...): marks ctest tests that compute all the time. In most tests the ranks mostly
# wait for each other, so `scripts/test` runs five tests at once for each core. Of the busy tests
# each core gets one or two.
function(peal_busy)
  set_tests_properties(${ARGN} PROPERTIES PROCESSORS 3)
endfunction()

# peal_test(store_test SOURCES ... LINKS ...): one GoogleTest program, and a ctest test of the same name. Its
# sources compile together (peal_compile_together).
#   SHARDS n      n ctest tests, name_1 to name_n, share the program's tests
#   PRECOMPILED   the target whose precompiled header it shares; the default is peal_test_headers
#   LABELS        ctest labels; `scripts/test quick` leaves out the label `long`
#   ONE_THREAD    the program has one thread: it is not built for the thread sanitizer
#   PURE          the program tests pure functions of values: it is not built for any sanitizer
#   BUSY          see peal_busy
function(peal_test name)
  cmake_parse_arguments(ARG "BUSY;ONE_THREAD;PURE" "SHARDS;PRECOMPILED" "SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED peal_test_headers)
  endif()
  if((ARG_PURE AND PEAL_SANITIZE) OR (ARG_ONE_THREAD AND PEAL_SANITIZE STREQUAL thread))
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  peal_compile_together(${name})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} peal_test_options fmt::fmt GTest::gmock
                                        GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM ${ARG_PRECOMPILED})
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}")
    peal_time_limit(${name})
    if(ARG_BUSY)
      peal_busy(${name})
    endif()
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND ${name})
    set_tests_properties(${name}_${shard} PROPERTIES
      LABELS "${ARG_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    peal_time_limit(${name}_${shard})
    if(ARG_BUSY)
      peal_busy(${name}_${shard})
    endif()
  endforeach()
endfunction()

# peal_script_test(name SCRIPT ARGUMENTS...): a test in Python that runs no program of this build. It runs only
# in builds without a sanitizer.
function(peal_script_test name script)
  if(PEAL_SANITIZE)
    return()
  endif()
  add_test(NAME ${name} COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
  peal_time_limit(${name})
endfunction()
