# Runs kvtide-conformance on a folder of vectors that may be missing.
#
#   cmake -D PROGRAM=<kvtide-conformance> -D FOLDER=<folder>
#         -D DELIVERY=<direct|by_engine> -P folder_test.cmake
#
# The environment variable KVTIDE_CONFORMANCE names another folder.

cmake_minimum_required(VERSION 3.25)

if(DEFINED ENV{KVTIDE_CONFORMANCE})
  set(FOLDER "$ENV{KVTIDE_CONFORMANCE}")
endif()
if(NOT IS_DIRECTORY "${FOLDER}")
  message("SKIPPED: there is no folder ${FOLDER}; the vectors in "
          "tests/conformance/vectors are run all the same")
  return()
endif()
execute_process(COMMAND "${PROGRAM}" --delivery ${DELIVERY} "${FOLDER}"
                RESULT_VARIABLE got)
if(NOT "${got}" STREQUAL "0")
  message(FATAL_ERROR "exit code ${got}")
endif()
