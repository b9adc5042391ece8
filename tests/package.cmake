# Installs the library from BUILD into SCRATCH, then configures, builds and runs
# the program in tests/package against it.
#
#   cmake -D BUILD=<build folder> -D SCRATCH=<folder> -D SOURCE=<tests/package>
#         -D CXX=<compiler> -D FLAGS=<flags> -P tests/package.cmake

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${SCRATCH}")
foreach(
  step
  "--install;${BUILD};--prefix;${SCRATCH}/prefix"
  "-S;${SOURCE};-B;${SCRATCH}/build;-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix;-DCMAKE_CXX_COMPILER=${CXX};-DCMAKE_CXX_FLAGS=${FLAGS};-DCMAKE_BUILD_TYPE=Release"
  "--build;${SCRATCH}/build")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" ${step}
    RESULT_VARIABLE code
    OUTPUT_VARIABLE text
    ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "cmake ${step}:\n${text}")
  endif()
endforeach()
execute_process(COMMAND "${SCRATCH}/build/consumer" COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE "${SCRATCH}")
