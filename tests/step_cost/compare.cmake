# Counts instructions per step with and without the order checker, and fails if
# the checker costs more than LIMIT percent.
#
#   cmake -D PROGRAM=<kvtide-step-cost> -D VALGRIND=<valgrind> -D SCRATCH=<folder>
#         -D LIMIT=3 -P compare.cmake

cmake_minimum_required(VERSION 3.25)

set(steps 32)
file(MAKE_DIRECTORY "${SCRATCH}")

function(count requests checks variable)
  execute_process(
    COMMAND
      "${VALGRIND}" --tool=callgrind --toggle-collect=kvtide_measured_run
      "--callgrind-out-file=${SCRATCH}/${requests}_${checks}.out" "${PROGRAM}"
      --requests ${requests} --steps ${steps} --checks ${checks}
    RESULT_VARIABLE status
    OUTPUT_VARIABLE said
    ERROR_VARIABLE log)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "callgrind ended with ${status}:\n${said}${log}")
  endif()
  if(NOT log MATCHES "Collected : ([0-9]+)" OR CMAKE_MATCH_1 EQUAL 0)
    message(FATAL_ERROR "callgrind counted nothing:\n${log}")
  endif()
  math(EXPR each "${CMAKE_MATCH_1} / ${steps}")
  string(STRIP "${said}" said)
  message(STATUS "${said}; checks ${checks}: ${each} instructions per step")
  set(${variable}
      ${each}
      PARENT_SCOPE)
endfunction()

foreach(requests IN ITEMS 64 256)
  count(${requests} false without)
  count(${requests} true with)
  # In hundredths of a percent.
  math(EXPR more "(${with} - ${without}) * 10000 / ${without}")
  math(EXPR limit "${LIMIT} * 100")
  message(STATUS "${requests} requests: the order checker adds ${more} / 100 "
                 "percent of at most ${LIMIT}")
  if(more GREATER limit)
    message(SEND_ERROR "The order checker costs too much.")
  endif()
endforeach()
