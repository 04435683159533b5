# `cmake --install build/release --prefix X` installs the programs, the libraries, the public headers, and a
# CMake package. Another project then needs only:
#   find_package(peal REQUIRED COMPONENTS train)  # `COMPONENTS train` asks for LibTorch
#   target_link_libraries(app PRIVATE peal::peal peal::train)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(PEAL_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/peal)

# The target that users link; it links the other libraries. Building this target builds everything that is
# installed, but no tests. It has a source, because otherwise CMake would make no target to build.
add_library(peal INTERFACE EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/peal/init/init.h)
add_library(peal::peal ALIAS peal)
target_link_libraries(peal INTERFACE peal::init)

# All libraries but train are one export. train has a separate export, because reading it needs LibTorch.
get_property(core GLOBAL PROPERTY PEAL_MODULES)
add_dependencies(peal ${core})
get_property(train GLOBAL PROPERTY PEAL_TRAIN_MODULES)
list(REMOVE_ITEM core ${train})

install(TARGETS peal ${core} EXPORT pealTargets FILE_SET HEADERS)
install(EXPORT pealTargets NAMESPACE peal:: DESTINATION ${PEAL_PACKAGE_DIR})
if(train)
  install(TARGETS ${train} EXPORT pealTrainTargets FILE_SET HEADERS)
  install(EXPORT pealTrainTargets NAMESPACE peal:: DESTINATION ${PEAL_PACKAGE_DIR})
endif()
if(TARGET peal_program)
  add_dependencies(peal peal_program)
  install(TARGETS peal_program DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES $<TARGET_FILE_DIR:peal_program>/horovodrun DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${PROJECT_BINARY_DIR}/share/peal/bench DESTINATION share/peal)
endif()

# Without a LibTorch from the user, a project uses the folder of the LibTorch with which train was built.
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
