# LibTorch, for peal/train and nothing else: gives the target peal::torch. Included where PEAL_TORCH
# is on, and installed beside pealConfig.cmake, which includes it for the component train.
#
# Looked for in this order: CMAKE_PREFIX_PATH or Torch_DIR; the `torch` of the active Python; the
# `torch` of the .venv that scripts/bootstrap makes.
set(PEAL_TORCH_OLDEST 2.11)

# Where the `torch` that this Python imports keeps its CMake package; empty if it has none.
function(peal_torch_of_python python result)
  execute_process(
    COMMAND ${python} -c "import torch; print(torch.utils.cmake_prefix_path)"
    OUTPUT_VARIABLE prefix
    OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET)
  set(${result} "${prefix}" PARENT_SCOPE)
endfunction()

# TorchConfig.cmake warns of parts of its own that its CPU build does not ship (kineto).
set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
find_package(Torch ${PEAL_TORCH_OLDEST} QUIET CONFIG)
foreach(python python3 ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  if(NOT Torch_FOUND)
    peal_torch_of_python(${python} prefix)
    if(prefix)
      find_package(Torch ${PEAL_TORCH_OLDEST} QUIET CONFIG PATHS ${prefix} NO_DEFAULT_PATH)
    endif()
  endif()
endforeach()
unset(CMAKE_MESSAGE_LOG_LEVEL)
if(NOT Torch_FOUND)
  message(FATAL_ERROR
    "LibTorch ${PEAL_TORCH_OLDEST} or newer was not found: neither in CMAKE_PREFIX_PATH or Torch_DIR, "
    "nor as the `torch` of python3, nor in ${PROJECT_SOURCE_DIR}/.venv. Run scripts/bootstrap, which "
    "installs it there, or build the core alone with -DPEAL_TORCH=OFF.")
endif()
message(STATUS "LibTorch ${Torch_VERSION}: ${Torch_DIR}")

# Its flags reach only who links this. Imported, so that its headers are the system's (their warnings
# are not ours) and an installed peal::train asks for it by name.
if(NOT TARGET peal::torch)
  add_library(peal::torch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(peal::torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(peal::torch INTERFACE ${TORCH_INCLUDE_DIRS})
endif()
