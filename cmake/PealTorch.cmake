# LibTorch, only for peal/train. Included if PEAL_TORCH is on.
include(${CMAKE_CURRENT_LIST_DIR}/PealFindTorch.cmake)

peal_read_torch_dir()  # from the user, or from an earlier run
if(PEAL_TORCH_NAMED)
  peal_try_torch(PATHS "${PEAL_TORCH_NAMED}" NO_DEFAULT_PATH)
else()
  peal_try_torch()  # CMAKE_PREFIX_PATH
  peal_try_torch_of_python(python3)
  peal_try_torch_of_python(${PROJECT_SOURCE_DIR}/.venv/bin/python)  # made by scripts/bootstrap
endif()
if(NOT PEAL_TORCH_CHOICE AND PEAL_TORCH_NAMED)
  peal_tell_named(peal_torch_where)
  message(FATAL_ERROR "LibTorch ${PEAL_TORCH_OLDEST} or newer was not found${peal_torch_where}, or build "
    "only the core with -DPEAL_TORCH=OFF.")
elseif(NOT PEAL_TORCH_CHOICE)
  peal_tell_too_old(PEAL_TORCH_TOO_OLD)
  message(FATAL_ERROR
    "LibTorch ${PEAL_TORCH_OLDEST} or newer was not found: neither in CMAKE_PREFIX_PATH, "
    "nor as the `torch` of python3, nor in ${PROJECT_SOURCE_DIR}/.venv.${PEAL_TORCH_TOO_OLD} Run "
    "scripts/bootstrap, which installs it there, or build only the core with -DPEAL_TORCH=OFF.")
endif()
peal_make_torch(${PEAL_TORCH_CHOICE} peal_torch_lack)
if(peal_torch_lack)
  message(FATAL_ERROR "Install LibTorch again, or build only the core with -DPEAL_TORCH=OFF: "
    "${peal_torch_lack}")
endif()
set(Torch_DIR ${PEAL_TORCH_CHOICE} CACHE PATH "The folder of TorchConfig.cmake" FORCE)  # for later runs too
message(STATUS "LibTorch ${PEAL_TORCH_CHOICE_VERSION}: ${PEAL_TORCH_CHOICE}")
