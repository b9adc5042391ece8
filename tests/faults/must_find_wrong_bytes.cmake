# Runs PROGRAM on TRACE and fails unless it reports mismatches and exits with 1.
execute_process(
  COMMAND "${PROGRAM}" --trace "${TRACE}" --no-progress --json -
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE errors)
if(NOT status EQUAL 1)
  message(FATAL_ERROR "exit status ${status}, expected 1: ${errors}${output}")
endif()
if(NOT output MATCHES "\"mismatches\": *([0-9]+)" OR CMAKE_MATCH_1 EQUAL 0)
  message(FATAL_ERROR "no wrong byte was found: ${output}")
endif()
message("${CMAKE_MATCH_1} wrong bytes found, as they should be")
