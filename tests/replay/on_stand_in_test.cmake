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
  string(JSON loaded GET "${output}" runtime loaded_chunks)
  if(NOT mismatches EQUAL 0)
    message(SEND_ERROR "${ARGN}: ${mismatches} mismatches")
  endif()
  if(loaded EQUAL 0)
    message(SEND_ERROR "${ARGN}: nothing was loaded, so nothing was shown")
  endif()
endfunction()

# A device cache so small that prompts come back from the host.
set(few --rows 12 --device-blocks 2500 --cuda-kernel-below 4KiB --no-progress)
replay(${few} --cuda-slice 16KiB)
replay(${few} --cuda-path kernel --cuda-slice 1MiB --delivery by_engine)
replay(${few} --cuda-path batch --cuda-slice 1MiB --cuda-fence host --ranks 2
       --cuda-streams 2)
