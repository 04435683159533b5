# `cmake --install build/release --prefix X`: the programs, the libraries, the headers that a user
# includes, and a CMake package, so that in another project this is enough:
#   find_package(peal REQUIRED COMPONENTS train)  # `COMPONENTS train` asks for LibTorch
#   target_link_libraries(app PRIVATE peal::peal peal::train)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(PEAL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/peal)

# What a user links: the front door, and through it the rest. As a target to build it is all that is
# installed, and no test: it has a source so that there is such a target.
add_library(peal INTERFACE EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/peal/init/init.h)
add_library(peal::peal ALIAS peal)
target_link_libraries(peal INTERFACE peal::init)

# Everything but train is one export; train has its own, since it needs LibTorch to be read.
get_property(core GLOBAL PROPERTY PEAL_MODULES)
add_dependencies(peal ${core})
set(train ${core})
list(FILTER core EXCLUDE REGEX "^peal_train$")
list(FILTER train INCLUDE REGEX "^peal_train$")

install(TARGETS peal ${core} EXPORT pealTargets FILE_SET HEADERS)
install(EXPORT pealTargets NAMESPACE peal:: DESTINATION ${PEAL_PACKAGE_DIR})
if(train)
  install(TARGETS ${train} EXPORT pealTrainTargets FILE_SET HEADERS)
  install(EXPORT pealTrainTargets NAMESPACE peal:: DESTINATION ${PEAL_PACKAGE_DIR})
endif()
if(TARGET peal_program)
  add_dependencies(peal peal_program)
  install(TARGETS peal_program DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Where a user's project looks for LibTorch unless it names one: where that is with which train was built.
set(PEAL_TORCH_FOLDER "")
if(train)
  set(PEAL_TORCH_FOLDER ${PEAL_TORCH_CHOICE})
endif()
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/pealConfig.cmake.in ${PROJECT_BINARY_DIR}/pealConfig.cmake
  INSTALL_DESTINATION ${PEAL_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pealConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/pealConfig.cmake ${PROJECT_BINARY_DIR}/pealConfigVersion.cmake
        DESTINATION ${PEAL_PACKAGE_DIR})
if(train)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/PealFindTorch.cmake DESTINATION ${PEAL_PACKAGE_DIR})
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
