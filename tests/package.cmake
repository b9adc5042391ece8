# Configures, builds and runs the programs in SOURCE against a copy of the library
# that is installed from BUILD into SCRATCH. With EMBED, a checkout, nothing is
# installed: the programs make that a part of their own build. With PKG_CONFIG,
# consumer.c is also built without CMake.
#
#   cmake -D BUILD=<build folder> -D SCRATCH=<folder> -D SOURCE=<folder>
#         -D CXX=<compiler> -D CC=<compiler> -D FLAGS=<flags>
#         [-D EMBED=<checkout>] [-D BUILD_TYPE=<type>]
#         [-D PKG_CONFIG=<pkg-config>] -P tests/package.cmake

cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(
    COMMAND ${ARGV}
    RESULT_VARIABLE code
    OUTPUT_VARIABLE text
    ERROR_VARIABLE text)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGV}:\n${text}")
  endif()
endfunction()

if(NOT BUILD_TYPE)
  set(BUILD_TYPE Release)
endif()
file(REMOVE_RECURSE "${SCRATCH}")
if(EMBED)
  set(library "-DEMBED=${EMBED}")
else()
  set(library "-DCMAKE_PREFIX_PATH=${SCRATCH}/prefix")
  run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/prefix")
endif()
set(compilers "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=${FLAGS}")
if(CC)
  list(APPEND compilers "-DCMAKE_C_COMPILER=${CC}" "-DCMAKE_C_FLAGS=${FLAGS}")
endif()
run("${CMAKE_COMMAND}" -S "${SOURCE}" -B "${SCRATCH}/build" "${library}"
    ${compilers} "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/build" -j 2)
file(GLOB programs "${SCRATCH}/build/consumer*")
if(NOT programs)
  message(FATAL_ERROR "${SOURCE} has no program")
endif()
foreach(program IN LISTS programs)
  run("${program}")
endforeach()

if(PKG_CONFIG)
  file(GLOB_RECURSE file "${SCRATCH}/prefix/*/kvtide.pc")
  get_filename_component(folder "${file}" DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} "${folder}")
  execute_process(
    COMMAND "${PKG_CONFIG}" --cflags --libs kvtide
    OUTPUT_VARIABLE words
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(words UNIX_COMMAND "${words}")
  separate_arguments(FLAGS UNIX_COMMAND "${FLAGS}")
  get_filename_component(folder "${folder}" DIRECTORY)
  run("${CC}" -std=c99 ${FLAGS} -o "${SCRATCH}/by_hand" "${SOURCE}/consumer.c"
      ${words} "-Wl,-rpath,${folder}")
  run("${SCRATCH}/by_hand")
endif()
file(REMOVE_RECURSE "${SCRATCH}")
