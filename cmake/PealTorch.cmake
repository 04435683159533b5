# LibTorch, for peal/train and nothing else. Included where PEAL_TORCH is on.
include(${CMAKE_CURRENT_LIST_DIR}/PealFindTorch.cmake)

peal_find_torch(PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python)  # which scripts/bootstrap makes
if(NOT Torch_FOUND)
  message(FATAL_ERROR
    "LibTorch ${PEAL_TORCH_OLDEST} or newer was not found: neither in CMAKE_PREFIX_PATH or Torch_DIR, "
    "nor as the `torch` of python3, nor in ${PROJECT_SOURCE_DIR}/.venv. Run scripts/bootstrap, which "
    "installs it there, or build the core alone with -DPEAL_TORCH=OFF.")
endif()
message(STATUS "LibTorch ${Torch_VERSION}: ${Torch_DIR}")
