# The order in which LibTorch is found, for peal's own build (PealTorch.cmake) and for projects that use an
# installed peal (pealConfig.cmake), beside which this file is installed.
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

# peal_find_torch([PYTHON python] [FOLDER folder]): gives the target peal::torch, or says FALSE in Torch_FOUND.
#
# Looked for in this order: CMAKE_PREFIX_PATH or Torch_DIR; the `torch` of the active Python; that of
# `python`; the package in `folder`.
function(peal_find_torch)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "PYTHON;FOLDER" "")
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)  # TorchConfig.cmake warns of parts that its CPU build lacks (kineto)
  find_package(Torch ${PEAL_TORCH_OLDEST} QUIET CONFIG)
  foreach(python IN ITEMS python3 ${ARG_PYTHON})
    if(NOT Torch_FOUND)
      peal_torch_of_python(${python} prefix)
      if(prefix)
        find_package(Torch ${PEAL_TORCH_OLDEST} QUIET CONFIG PATHS ${prefix} NO_DEFAULT_PATH)
      endif()
    endif()
  endforeach()
  if(NOT Torch_FOUND AND ARG_FOLDER)
    find_package(Torch ${PEAL_TORCH_OLDEST} QUIET CONFIG PATHS ${ARG_FOLDER} NO_DEFAULT_PATH)
  endif()
  set(Torch_FOUND ${Torch_FOUND} PARENT_SCOPE)
  set(Torch_VERSION ${Torch_VERSION} PARENT_SCOPE)

  # Its flags reach only who links this. Imported, so that its headers are the system's (their warnings
  # are not ours) and an installed peal::train asks for it by name.
  if(Torch_FOUND AND NOT TARGET peal::torch)
    add_library(peal::torch INTERFACE IMPORTED GLOBAL)
    target_link_libraries(peal::torch INTERFACE ${TORCH_LIBRARIES})
    target_include_directories(peal::torch INTERFACE ${TORCH_INCLUDE_DIRS})
  endif()
endfunction()
