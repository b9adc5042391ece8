# Runs bench-copy and fails unless it ends and speaks as expected.
#
#   cmake -D PROGRAM=<file> -D ARGS=<words> -D RC=<exit code> -D SAYS=<regex>
#         [-D JSON=<file> -D COPIES=<rows> -D DECODE=<rows>] -P run_test.cmake

cmake_minimum_required(VERSION 3.25)

separate_arguments(ARGS UNIX_COMMAND "${ARGS}")
if(COPIES)
  file(REMOVE "${JSON}")
  list(APPEND ARGS --json "${JSON}")
endif()
execute_process(
  COMMAND "${PROGRAM}" ${ARGS}
  RESULT_VARIABLE rc
  OUTPUT_VARIABLE out
  ERROR_VARIABLE err)
set(said "${out}${err}")
if(NOT rc STREQUAL RC)
  message(FATAL_ERROR "ended with ${rc}, not ${RC}:\n${said}")
endif()
if(NOT said MATCHES "${SAYS}")
  message(FATAL_ERROR "does not say '${SAYS}':\n${said}")
endif()
if(NOT COPIES)
  return()
endif()

# Every row is there, and every number in it is one that times can give.
file(READ "${JSON}" json)
foreach(part IN ITEMS copies decode)
  string(TOUPPER "${part}" wanted)
  string(JSON count LENGTH "${json}" "${part}")
  if(NOT count EQUAL "${${wanted}}")
    message(FATAL_ERROR "${part}: ${count} rows, not ${${wanted}}:\n${json}")
  endif()
endforeach()
math(EXPR last "${COPIES} - 1")
foreach(row RANGE ${last})
  foreach(what IN ITEMS by_one_copy by_copy_per_fragment gb_per_second)
    string(JSON median GET "${json}" copies ${row} ${what} p50)
    if(NOT median GREATER 0)
      message(FATAL_ERROR "copies ${row}: ${what} is ${median}")
    endif()
  endforeach()
endforeach()
string(JSON command GET "${json}" command)
if(NOT command MATCHES "--quick")
  message(FATAL_ERROR "the command is not told: ${command}")
endif()
