# Whether bench-distance works, with real processes and TLS; times are not judged
# here.
#
#   cmake -D PROGRAM=<bench-distance> -D MAKE_CERTIFICATES=<script>
#         -D SCRATCH=<folder> -P distance_smoke.cmake
cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${SCRATCH}")
execute_process(COMMAND "${MAKE_CERTIFICATES}" "${SCRATCH}" engine worker
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND "${PROGRAM}" --certificates "${SCRATCH}" --requests 32 --warm-up 8
          --steps 24 --ranks 2 --rounds 1 --json "${SCRATCH}/distance.json"
  OUTPUT_VARIABLE table
  COMMAND_ERROR_IS_FATAL ANY)
message("${table}")
foreach(ranks IN ITEMS "1 here" "1 remote" "1 remote, TLS" "2 here"
                       "1 here, 1 remote" "1 here, 1 remote, TLS")
  string(FIND "${table}" "| ${ranks} | whole step | " found)
  if(found EQUAL -1)
    message(FATAL_ERROR "no row for ${ranks}")
  endif()
endforeach()
file(READ "${SCRATCH}/distance.json" figures)
string(JSON rows LENGTH "${figures}" rows)
if(NOT rows EQUAL 28)
  message(FATAL_ERROR "${rows} rows in the file")
endif()
