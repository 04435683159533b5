# Installs BUILD below WORK, builds CONSUMER against the installation, and runs it.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK}/prefix ${WORK}/consumer)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
# The target `peal` alone must build everything that was just installed.
if(NINJA)
  execute_process(COMMAND ${NINJA} -C ${BUILD} -t commands peal
                  OUTPUT_VARIABLE commands COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB libraries ${WORK}/prefix/lib*/*.a)
  if(NOT libraries)
    message(FATAL_ERROR "no library was installed")
  endif()
  foreach(built ${libraries} bin/peal)
    get_filename_component(name ${built} NAME)
    if(NOT commands MATCHES "(/| )${name} ")
      message(FATAL_ERROR "the target peal does not build ${name}")
    endif()
  endforeach()
endif()

run(${WORK}/prefix/bin/horovodrun -np 1 true)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/consumer -G Ninja
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Release -DCOMPONENTS=${COMPONENTS} -DTorch_DIR=${TORCH})
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/alone)
run(${WORK}/consumer/spawned)
if(COMPONENTS)
  run(${WORK}/consumer/train_alone)
endif()
