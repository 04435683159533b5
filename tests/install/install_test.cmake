# Installs BUILD below WORK, builds CONSUMER against what was installed, and runs it.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK}/prefix ${WORK}/consumer)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/consumer -G Ninja
    -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Release -DCOMPONENTS=${COMPONENTS} -DTorch_DIR=${TORCH})
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/alone)
if(COMPONENTS)
  run(${WORK}/consumer/train_alone)
endif()
