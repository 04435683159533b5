# A target shares the project's precompiled header, or has one of its own, of the headers given.
function(peal_precompile target shared)
  if(ARGN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${shared})
  endif()
endfunction()

# peal_module(base SOURCES error.cpp ... HEADERS error.h ... TESTS error_test.cpp ... LINKS peal::net ...)
#
# One folder under peal/ is one static library `peal_<name>`, known to everyone as peal::<name>,
# and one test program `<name>_test`. The link graph is the include graph: LINKS names the folders
# that this one may look into, and nothing else reaches it. HEADERS are those that users include:
# they are installed. PRECOMPILE: headers of a precompiled header of its own. ONE_THREAD: so are its tests.
function(peal_module name)
  cmake_parse_arguments(ARG "ONE_THREAD" "" "SOURCES;HEADERS;TESTS;LINKS;TEST_LINKS;PRECOMPILE" ${ARGN})
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
  peal_precompile(peal_${target} peal_headers ${ARG_PRECOMPILE})
  set_property(GLOBAL APPEND PROPERTY PEAL_MODULES peal_${target})
  if(PEAL_TESTS AND ARG_TESTS)
    if(ARG_ONE_THREAD)
      set(one_thread ONE_THREAD)
    endif()
    peal_test(${target}_test ${one_thread} SOURCES ${ARG_TESTS} LINKS peal::${target} ${ARG_TEST_LINKS})
  endif()
endfunction()

# peal_test(store_test SOURCES ... LINKS ...): one GoogleTest program, known to ctest under its name; with
# SHARDS n as name_1 to name_n, each with its share of the tests and TIMEOUT for itself. PRECOMPILE as above.
# ONE_THREAD: there is nothing in it for the thread sanitizer, and where that is asked for it is left out.
function(peal_test name)
  cmake_parse_arguments(ARG "ONE_THREAD" "TIMEOUT;SHARDS" "SOURCES;LINKS;LABELS;PRECOMPILE" ${ARGN})
  if(ARG_ONE_THREAD AND PEAL_SANITIZE STREQUAL thread)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} peal_test_options fmt::fmt GTest::gmock
                                        GTest::gtest_main)
  peal_precompile(${name} peal_test_headers ${ARG_PRECOMPILE})
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}_${shard} COMMAND ${name})
    set_tests_properties(${name}_${shard} PROPERTIES
      TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}"
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
