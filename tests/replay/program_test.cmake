# Runs kvtide-replay as people do, and checks its exit status and what it writes.
#
#   cmake -D PROGRAM=<file> -D SAMPLE=<trace> -D SCRATCH=<folder> -P <this file>

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")

function(run status)
  execute_process(
    COMMAND "${PROGRAM}" ${ARGN}
    RESULT_VARIABLE got
    OUTPUT_VARIABLE output
    ERROR_VARIABLE errors)
  if(NOT got STREQUAL status)
    message(SEND_ERROR "${ARGN}: exit status ${got} instead of ${status}\n"
                       "${output}${errors}")
  endif()
  set(output
      "${output}"
      PARENT_SCOPE)
  set(errors
      "${errors}"
      PARENT_SCOPE)
endfunction()

# Bad input: status 2, nothing on stdout, one line on stderr that matches.
function(refuse regex)
  run(2 ${ARGN})
  if(NOT output STREQUAL "")
    message(SEND_ERROR "${ARGN}: wrote to stdout: ${output}")
  endif()
  if(NOT errors MATCHES "^kvtide-replay: [^\n]*\n$" OR NOT errors MATCHES
                                                       "${regex}")
    message(SEND_ERROR "${ARGN}: complained with: ${errors}")
  endif()
endfunction()

# -- good input ----------------------------------------------------------------

run(0 --help)
if(NOT output MATCHES "the runtime's share is")
  message(SEND_ERROR "the help does not say what counts: ${output}")
endif()
run(0 --trace "${SAMPLE}" --rows 20)
if(NOT output MATCHES "mismatches +0\n" OR NOT output MATCHES "left over +0\n")
  message(SEND_ERROR "the report says: ${output}")
endif()
run(0 --trace "${SAMPLE}" --rows 20 --json "${SCRATCH}/report.json")
file(READ "${SCRATCH}/report.json" from_file)
run(0 --trace "${SAMPLE}" --rows 20 --json -)
foreach(text IN ITEMS from_file output)
  string(JSON mismatches GET "${${text}}" bytes mismatches)
  if(NOT mismatches EQUAL 0)
    message(SEND_ERROR "${mismatches} mismatches")
  endif()
  string(JSON ${text} REMOVE "${${text}}" timing)
endforeach()
if(NOT from_file STREQUAL output)
  message(SEND_ERROR "two runs differ: ${from_file}${output}")
endif()

# A GPU where there is one: else a word on that, and the host.
run(0 --trace "${SAMPLE}" --rows 20 --device auto)
if(NOT output MATCHES "mismatches +0\n")
  message(SEND_ERROR "the report says: ${output}")
endif()
if(NOT errors MATCHES "^kvtide-replay: uses (GPU 0|the host device: )[^\n]*\n$")
  message(SEND_ERROR "does not say which device: ${errors}")
endif()
if(errors MATCHES "uses the host device: ([^\n]*)\n")
  set(reason "${CMAKE_MATCH_1}")
  run(2 --trace "${SAMPLE}" --rows 20 --device cuda)
  if(NOT errors STREQUAL "kvtide-replay: ${reason}\n" OR NOT output STREQUAL "")
    message(SEND_ERROR "without a GPU: ${output}${errors}")
  endif()
endif()

# What depends on the wall time is there with either clock.
foreach(clock IN ITEMS virtual real)
  run(0 --trace "${SAMPLE}" --rows 100 --clock ${clock} --json -)
  foreach(field IN ITEMS runtime_share "runtime_shares;calls"
                         "runtime_shares;news" "runtime_shares;waits")
    string(JSON share ERROR_VARIABLE missing GET "${output}" timing ${field})
    if(missing OR share LESS 0 OR share GREATER 1)
      message(SEND_ERROR "${clock} clock, ${field}: ${share} ${missing}")
    endif()
  endforeach()
  foreach(field IN ITEMS to_memcpy bytes_per_second memcpy_bytes_per_second)
    string(JSON rate ERROR_VARIABLE missing GET "${output}" timing copies
                                                ${field})
    if(missing OR NOT rate GREATER 0)
      message(SEND_ERROR "${clock} clock, ${field}: ${rate} ${missing}")
    endif()
  endforeach()
  string(JSON copied GET "${output}" bytes copied)
  string(JSON stored GET "${output}" bytes stored)
  string(JSON loaded GET "${output}" bytes loaded)
  math(EXPR planned "${stored} + ${loaded}")
  if(NOT copied EQUAL planned OR copied EQUAL 0)
    message(SEND_ERROR "${clock} clock: ${copied} of ${planned} bytes")
  endif()
endforeach()

# -- bad input -----------------------------------------------------------------

file(READ "${SAMPLE}" head LIMIT 1000)
file(WRITE "${SCRATCH}/truncated.jsonl" "${head}")
refuse("truncated.jsonl:[0-9]+: not a complete JSON object" --trace
       "${SCRATCH}/truncated.jsonl")
file(WRITE "${SCRATCH}/negative.jsonl"
     "{\"timestamp\":0,\"input_length\":-5,\"output_length\":1,\"hash_ids\":[]}")
refuse("negative.jsonl:1: input_length is -5" --trace
       "${SCRATCH}/negative.jsonl")
refuse("cannot be opened: No such file" --trace "${SCRATCH}/missing.jsonl")
refuse("is a directory" --trace "${SCRATCH}")
if(EXISTS /dev/zero)
  refuse("is neither a file nor a pipe" --trace /dev/zero)
endif()
refuse("--trace")
refuse("--device-blocks" --trace "${SAMPLE}" --device-blocks 0)
refuse("--tokens-per-block" --trace "${SAMPLE}" --tokens-per-block -1)
refuse("--rules" --trace "${SAMPLE}" --rules none)
refuse("more than once" --trace "${SAMPLE}" --sync --sync)
refuse("more than the machine has" --trace "${SAMPLE}" --host-bytes 4096TiB)
refuse("host_bytes" --trace "${SAMPLE}" --host-bytes 1)
refuse("cannot be written: No such file" --trace "${SAMPLE}" --json
       "${SCRATCH}/no/report")

# A report that is lost is no verdict on the bytes: not status 1.
if(EXISTS /dev/full)
  run(2 --trace "${SAMPLE}" --rows 20 --json /dev/full)
  if(NOT errors STREQUAL "kvtide-replay: /dev/full: cannot be written\n")
    message(SEND_ERROR "complained with: ${errors}")
  endif()
  foreach(words IN ITEMS "" "--json;-" "--help")
    execute_process(
      COMMAND "${PROGRAM}" --trace "${SAMPLE}" --rows 20 ${words}
      RESULT_VARIABLE got
      OUTPUT_FILE /dev/full
      ERROR_VARIABLE errors)
    if(NOT got STREQUAL 2
       OR NOT errors STREQUAL
          "kvtide-replay: cannot write to standard output\n")
      message(SEND_ERROR "${words}: exit status ${got}: ${errors}")
    endif()
  endforeach()
endif()
