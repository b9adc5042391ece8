# Replays on GPUs that are none, and checks every byte.
#
#   cmake -D PROGRAM=<file> -D SAMPLE=<trace> -P <this file>

cmake_minimum_required(VERSION 3.25)

function(replay)
  execute_process(
    COMMAND "${PROGRAM}" --trace "${SAMPLE}" --device cuda --json - ${ARGN}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE output
    ERROR_VARIABLE errors)
  if(NOT status EQUAL 0)
    message(SEND_ERROR "${ARGN}: exit status ${status}\n${output}${errors}")
    return()
  endif()
  string(JSON mismatches GET "${output}" bytes mismatches)
  string(JSON loaded GET "${output}" jobs loads)
  if(NOT mismatches EQUAL 0)
    message(SEND_ERROR "${ARGN}: ${mismatches} mismatches")
  endif()
  if(loaded EQUAL 0)
    message(SEND_ERROR "${ARGN}: nothing was loaded, so nothing was shown")
  endif()
endfunction()
