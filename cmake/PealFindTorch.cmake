# Chooses and links LibTorch, for peal's build (PealTorch.cmake) and for projects that use an installed peal
# (pealConfig.cmake). This file is installed beside pealConfig.cmake. The two search in different orders.
set(PEAL_TORCH_OLDEST 2.11)

# Sets PEAL_TORCH_NAMED to the folder that the user named, if any: Torch_DIR, as a variable or in the
# environment. No other folder is tried then.
macro(peal_read_torch_dir)
  set(PEAL_TORCH_NAMED "${Torch_DIR}")
  if(NOT PEAL_TORCH_NAMED)
    set(PEAL_TORCH_NAMED "$ENV{Torch_DIR}")
  endif()
endmacro()

# peal_try_torch([find_package's arguments for the places]): unless an earlier call has found a LibTorch, sets
# PEAL_TORCH_CHOICE and PEAL_TORCH_CHOICE_VERSION to the folder and version of the first LibTorch there.
# Appends versions that are too old to PEAL_TORCH_TOO_OLD. Does not change Torch_DIR.
#
# Asks for a version that does not exist, so find_package only lists the candidates and loads nothing.
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

# peal_try_torch for the `torch` that this Python imports.
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

# A text about the LibTorchs that are too old; empty without any.
function(peal_tell_too_old result)
  set(reasons "")
  foreach(torch IN LISTS PEAL_TORCH_TOO_OLD)
    string(APPEND reasons " ${torch} is too old: peal needs ${PEAL_TORCH_OLDEST} or newer.")
  endforeach()
  set(${result} "${reasons}" PARENT_SCOPE)
endfunction()

# The error text for a PEAL_TORCH_NAMED without a LibTorch: the folder, and what to do.
function(peal_tell_named result)
  peal_tell_too_old(too_old)
  set(${result} " in Torch_DIR, which is ${PEAL_TORCH_NAMED}.${too_old} Set Torch_DIR to the folder of its \
TorchConfig.cmake, or remove it from the cache with -UTorch_DIR and from the environment" PARENT_SCOPE)
endfunction()

# The compile definitions of torch_cpu in the package in `folder`; may be empty. Users of LibTorch need them,
# because they change the layout of its classes.
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

# Makes the target peal::torch for the LibTorch of the package in `folder`, or sets `result` to a text about
# the missing file.
#
# Does not use TorchConfig.cmake: with CUDA it fails without an installed toolkit, which peal does not need,
# and it enables languages. peal needs only headers, their compile definitions, and three libraries.
# The target is imported, so that its headers are system headers without warnings, and an installed
# peal::train refers to it by name.
function(peal_make_torch folder result)
  get_filename_component(root "${folder}/../../.." ABSOLUTE)
  set(headers "${root}/include" "${root}/include/torch/csrc/api/include")
  foreach(file IN ITEMS include/torch/csrc/api/include/torch/torch.h lib/libtorch.so lib/libtorch_cpu.so
                        lib/libc10.so)
    if(NOT EXISTS "${root}/${file}")
      set(${result} "the LibTorch in ${folder} lacks ${root}/${file}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
  if(NOT TARGET peal::torch)
    add_library(peal::torch INTERFACE IMPORTED GLOBAL)
    target_include_directories(peal::torch INTERFACE ${headers})
    peal_read_torch_definitions("${folder}" definitions)
    target_compile_definitions(peal::torch INTERFACE ${definitions})
    # No code uses a symbol of libtorch.so, but it must be linked for its devices. libstdc++ comes first,
    # because the libtorch.so of 2.11 exports parts of an older std::filesystem, which crash.
    target_link_libraries(peal::torch INTERFACE stdc++
      "-Wl,--no-as-needed,\"${root}/lib/libtorch.so\" -Wl,--as-needed"
      "${root}/lib/libtorch_cpu.so" "${root}/lib/libc10.so")
  endif()
endfunction()
