# Fails unless a library shows exactly the functions that are in a list, and
# kvtide.h declares exactly these. A function may be added to all three; to take
# one away needs another SONAME.
#
#   cmake -D NM=<nm> -D LIBRARY=<libkvtide.so> -D HEADER=<kvtide.h>
#         -D LIST=<symbols.txt> -P tests/capi/symbols.cmake

cmake_minimum_required(VERSION 3.25)

file(STRINGS "${LIST}" listed)

# What is said of names that are in one list alone.
function(report names text)
  foreach(name IN LISTS names)
    message(SEND_ERROR "${name} ${text}")
  endforeach()
endfunction()

function(compare found what)
  set(more ${found})
  list(REMOVE_ITEM more ${listed})
  report("${more}" "is ${what}, but not in ${LIST}")
  set(fewer ${listed})
  list(REMOVE_ITEM fewer ${found})
  report("${fewer}" "is in ${LIST}, but not ${what}")
endfunction()

execute_process(
  COMMAND "${NM}" -D --defined-only --format=posix "${LIBRARY}"
  OUTPUT_VARIABLE text
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+" lines "${text}")
set(shown)
foreach(line IN LISTS lines)
  # A line is "name@@version type ..."; type A is the version itself.
  if(NOT line MATCHES "^[^ ]+ A")
    string(REGEX REPLACE "[@ ].*" "" name "${line}")
    list(APPEND shown "${name}")
    if(NOT line MATCHES "^[^ ]+@@KVTIDE_0\\.1 T")
      message(SEND_ERROR "not a function of version KVTIDE_0.1: ${line}")
    endif()
  endif()
endforeach()
compare("${shown}" "shown by ${LIBRARY}")

file(READ "${HEADER}" text)
string(REGEX REPLACE "//[^\n]*" "" text "${text}")
string(REGEX MATCHALL "KVTIDE_API[^;]*[ \n*]kvtide_[a-z_]+\\(" lines "${text}")
set(declared)
foreach(line IN LISTS lines)
  string(REGEX MATCH "kvtide_[a-z_]+\\($" name "${line}")
  string(REPLACE "(" "" name "${name}")
  list(APPEND declared "${name}")
endforeach()
compare("${declared}" "declared in ${HEADER}")

list(LENGTH listed count)
if(count EQUAL 0)
  message(FATAL_ERROR "${LIST} is empty")
endif()
message(STATUS "${count} functions")
