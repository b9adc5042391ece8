# Fails if a program or a library needs at run time what kvtide must not need:
# all but CAF's core, spdlog with fmt, the C and C++ runtimes, and, where built
# with them, libnuma and the CUDA runtime (MAY_NEED, a list of names).
#
#   cmake -D READELF=<readelf> -D FILE=<file> [-D SONAME=<name>]
#         [-D MAY_NEED=<name>...] -P tests/capi/needed.cmake

cmake_minimum_required(VERSION 3.25)

set(allowed
    # The C and C++ runtimes.
    "ld-linux-[a-z0-9-]+"
    "lib(c|dl|gcc_s|m|pthread|rt|stdc\\+\\+)"
    # What is bought.
    libcaf_core
    libfmt
    libspdlog
    ${MAY_NEED})

execute_process(
  COMMAND "${READELF}" -d "${FILE}"
  OUTPUT_VARIABLE text
  COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "\\(NEEDED\\)[^\n]*" lines "${text}")
if(NOT lines)
  message(FATAL_ERROR "${FILE} needs nothing at all?\n${text}")
endif()
list(JOIN allowed "|" pattern)
foreach(line IN LISTS lines)
  string(REGEX REPLACE ".*\\[(.*)\\].*" "\\1" name "${line}")
  if(NOT name MATCHES "^(${pattern})\\.so")
    message(SEND_ERROR "${FILE} needs ${name}")
  endif()
endforeach()
if(SONAME AND NOT text MATCHES "\\(SONAME\\)[^\n]*\\[${SONAME}\\]")
  message(SEND_ERROR "${FILE} is not ${SONAME}:\n${text}")
endif()
message(STATUS "${lines}")
