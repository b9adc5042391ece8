# Configures, builds and runs the program in SOURCE against a copy of the library
# that is installed from BUILD into SCRATCH. With EMBED, a checkout, nothing is
# installed: the program makes that a part of its own build.
#
#   cmake -D BUILD=<build folder> -D SCRATCH=<folder> -D SOURCE=<folder>
#         -D CXX=<compiler> -D FLAGS=<flags> [-D EMBED=<checkout>]
#         -P tests/package.cmake

cmake_minimum_required(VERSION 3.25)

function(run_cmake)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" ${ARGV}
    RESULT_VARIABLE code
    OUTPUT_VARIABLE text
    ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "cmake ${ARGV}:\n${text}")
  endif()
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
if(EMBED)
  set(library "-DEMBED=${EMBED}")
else()
  set(library "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix")
  run_cmake(--install "${BUILD}" --prefix "${SCRATCH}/prefix")
endif()
run_cmake(-S "${SOURCE}" -B "${SCRATCH}/build" "${library}"
          "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${FLAGS}"
          -DCMAKE_BUILD_TYPE=Release)
run_cmake(--build "${SCRATCH}/build")
execute_process(COMMAND "${SCRATCH}/build/consumer" COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE "${SCRATCH}")
