# How LibTorch is chosen and linked, for peal's own build (PealTorch.cmake) and for projects that use an
# installed peal (pealConfig.cmake), beside which this file is installed. Each has an order of its own.
set(PEAL_TORCH_OLDEST 2.11)

# Puts the folder that the user named, if he did, into PEAL_TORCH_NAMED: Torch_DIR, also of the environment.
# Nothing else is tried then.
macro(peal_read_torch_dir)
  set(PEAL_TORCH_NAMED "${Torch_DIR}")
  if(NOT PEAL_TORCH_NAMED)
    set(PEAL_TORCH_NAMED "$ENV{Torch_DIR}")
  endif()
endmacro()

# peal_try_torch([find_package's arguments that say where]): unless an earlier call found one, puts the
# folder and version of the first LibTorch there into PEAL_TORCH_CHOICE and PEAL_TORCH_CHOICE_VERSION.
# Those that are too old it passes over and appends to PEAL_TORCH_TOO_OLD. Torch_DIR stays as it was.
#
# No LibTorch has the version asked for, so find_package only lists what it considered, and loads nothing.
function(peal_try_torch)
  if(PEAL_TORCH_CHOICE)
    return()
  endif()
  set(cached "$CACHE{Torch_DIR}")
  unset(Torch_CONSIDERED_CONFIGS)
  unset(Torch_CONSIDERED_VERSIONS)
  set(CMAKE_REQUIRE_FIND_PACKAGE_Torch FALSE)
  find_package(Torch 999999 QUIET CONFIG ${ARGN})
  if(cached)
    set(Torch_DIR "${cached}" CACHE PATH "The folder of TorchConfig.cmake" FORCE)
  else()
    unset(Torch_DIR CACHE)
  endif()

  foreach(config version IN ZIP_LISTS Torch_CONSIDERED_CONFIGS Torch_CONSIDERED_VERSIONS)
    cmake_path(GET config PARENT_PATH folder)
    if(version VERSION_GREATER_EQUAL PEAL_TORCH_OLDEST)
      set(PEAL_TORCH_CHOICE "${folder}" PARENT_SCOPE)
      set(PEAL_TORCH_CHOICE_VERSION "${version}" PARENT_SCOPE)
      break()
    endif()
    list(APPEND PEAL_TORCH_TOO_OLD "LibTorch ${version} in ${folder}")
  endforeach()
  set(PEAL_TORCH_TOO_OLD "${PEAL_TORCH_TOO_OLD}" PARENT_SCOPE)
endfunction()

# The same for the `torch` that this Python imports.
macro(peal_try_torch_of_python python)
  if(NOT PEAL_TORCH_CHOICE)
    execute_process(
      COMMAND ${python} -c "import torch; print(torch.utils.cmake_prefix_path)"
      OUTPUT_VARIABLE peal_torch_prefix
      OUTPUT_STRIP_TRAILING_WHITESPACE
      ERROR_QUIET)
    if(peal_torch_prefix)
      peal_try_torch(PATHS "${peal_torch_prefix}" NO_DEFAULT_PATH)
    endif()
    unset(peal_torch_prefix)
  endif()
endmacro()

# What to tell of those that were passed over; empty if none was.
function(peal_tell_too_old result)
  set(told "")
  foreach(torch IN LISTS PEAL_TORCH_TOO_OLD)
    string(APPEND told " ${torch} is too old: peal needs ${PEAL_TORCH_OLDEST} or newer.")
  endforeach()
  set(${result} "${told}" PARENT_SCOPE)
endfunction()

# Where PEAL_TORCH_NAMED is that has no LibTorch, and what to do then.
function(peal_tell_named result)
  peal_tell_too_old(too_old)
  set(${result} " in Torch_DIR, which is ${PEAL_TORCH_NAMED}.${too_old} Set Torch_DIR to the folder of its \
TorchConfig.cmake, or take it out of the cache with -UTorch_DIR and out of the environment" PARENT_SCOPE)
endfunction()

# The compile definitions with which the LibTorch of the package in `folder` is to be used, since they change
# the layout of its classes: those of its torch_cpu. None if it names none.
function(peal_read_torch_definitions folder result)
  set(text "")
  if(EXISTS "${folder}/../Caffe2/Caffe2Targets.cmake")
    file(READ "${folder}/../Caffe2/Caffe2Targets.cmake" text)
  endif()
  set(words "")
  set(start "set_target_properties\\(torch_cpu PROPERTIES[^)]*INTERFACE_COMPILE_DEFINITIONS")
  if(text MATCHES "${start} \"([A-Za-z0-9_=;]*)\"")  # no generator expressions
    set(words "${CMAKE_MATCH_1}")
  endif()
  set(${result} "${words}" PARENT_SCOPE)
endfunction()

# Makes the target peal::torch of the LibTorch whose package lies in `folder`, or says in `result` what
# that one lacks.
#
# Not by its TorchConfig.cmake: with CUDA that ends the configuration where no toolkit is installed, although
# nothing of peal needs one, and enables languages. What peal needs are headers, the definitions with which
# to read them, and three libraries.
# Imported, so that the headers are the system's (their warnings are not ours) and an installed peal::train
# asks for it by name.
function(peal_make_torch folder result)
  get_filename_component(root "${folder}/../../.." ABSOLUTE)
  set(headers "${root}/include" "${root}/include/torch/csrc/api/include")
  foreach(file IN ITEMS include/torch/csrc/api/include/torch/torch.h lib/libtorch.so lib/libtorch_cpu.so
                        lib/libc10.so)
    if(NOT EXISTS "${root}/${file}")
      set(${result} "the LibTorch in ${folder} has no ${root}/${file}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
  if(NOT TARGET peal::torch)
    add_library(peal::torch INTERFACE IMPORTED GLOBAL)
    target_include_directories(peal::torch INTERFACE ${headers})
    peal_read_torch_definitions("${folder}" definitions)
    target_compile_definitions(peal::torch INTERFACE ${definitions})
    # Nobody names anything of libtorch.so; it is linked all the same, for the devices that come with it.
    # libstdc++ before it: the libtorch.so of 2.11 exports parts of an older std::filesystem, which crash.
    target_link_libraries(peal::torch INTERFACE stdc++
      "-Wl,--no-as-needed,\"${root}/lib/libtorch.so\" -Wl,--as-needed"
      "${root}/lib/libtorch_cpu.so" "${root}/lib/libc10.so")
  endif()
endfunction()
