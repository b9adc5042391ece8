# Fails unless a program ends with 0 and its output matches; ctest's own
# PASS_REGULAR_EXPRESSION would forget the first.
#
#   cmake -D PROGRAM=<file> -D SAYS=<regex> -P tests/examples/run_example.cmake

cmake_minimum_required(VERSION 3.25)

execute_process(
  COMMAND "${PROGRAM}"
  RESULT_VARIABLE code
  OUTPUT_VARIABLE said
  ERROR_VARIABLE said)
message("${said}")
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended with ${code}, not 0")
endif()
if(NOT said MATCHES "${SAYS}")
  message(FATAL_ERROR "${PROGRAM} did not say: ${SAYS}")
endif()
