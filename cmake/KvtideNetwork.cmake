# Sets KVTIDE_HAS_NETWORK: whether the component net is built, through which
# ranks of other processes join. It needs two more libraries of CAF, and OpenSSL;
# without them only it is missing, unless KVTIDE_WITH_NETWORK is ON.

set(KVTIDE_HAS_NETWORK OFF)
if(NOT KVTIDE_HAS_CAF OR KVTIDE_WITH_NETWORK STREQUAL "OFF")
  return()
endif()

find_package(OpenSSL QUIET)
if(OpenSSL_FOUND)
  find_package(CAF 0.17.6 EXACT QUIET COMPONENTS core io openssl)
endif()
if(OpenSSL_FOUND AND TARGET CAF::openssl)
  set(KVTIDE_HAS_NETWORK ON)
elseif(KVTIDE_WITH_NETWORK STREQUAL "ON")
  message(FATAL_ERROR "KVTIDE_WITH_NETWORK is ON, but OpenSSL or CAF's libraries "
                      "io and openssl are missing; install libssl-dev and "
                      "libcaf-dev, or use AUTO")
else()
  message(STATUS "kvtide: built without the component net, which needs OpenSSL "
                 "and CAF's libraries io and openssl")
endif()
