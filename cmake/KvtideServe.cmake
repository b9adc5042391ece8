# Sets KVTIDE_HAS_SERVE: whether the example kvtide-serve, or without CAF the
# part of it that speaks HTTP, is built. It needs packages that nothing else
# does; without them only it is missing, unless KVTIDE_BUILD_SERVE is ON.

set(KVTIDE_HAS_SERVE OFF)
if(KVTIDE_ONLY_GPU
   OR NOT KVTIDE_BUILD_EXAMPLES
   OR KVTIDE_BUILD_SERVE STREQUAL "OFF")
  return()
endif()

set(_missing "")
find_package(prometheus-cpp QUIET)
if(NOT prometheus-cpp_FOUND)
  list(APPEND _missing "prometheus-cpp (Debian: prometheus-cpp-dev)")
endif()
find_path(KVTIDE_BEAST_DIR boost/beast/http.hpp HINTS "${Boost_INCLUDE_DIRS}")
mark_as_advanced(KVTIDE_BEAST_DIR)
if(NOT KVTIDE_BEAST_DIR)
  list(APPEND _missing "Boost.Beast (Debian: libboost-dev)")
endif()
find_package(nlohmann_json QUIET)
if(NOT nlohmann_json_FOUND)
  list(APPEND _missing "nlohmann_json (Debian: nlohmann-json3-dev)")
endif()
find_package(CLI11 QUIET)
if(NOT CLI11_FOUND)
  list(APPEND _missing "CLI11 (Debian: libcli11-dev)")
endif()
if(_missing)
  list(JOIN _missing ", " _missing)
  if(KVTIDE_BUILD_SERVE STREQUAL "ON")
    message(FATAL_ERROR "kvtide-serve needs ${_missing}; install what is "
                        "missing, or set KVTIDE_BUILD_SERVE to OFF")
  endif()
  message(STATUS "kvtide: not building kvtide-serve, which needs ${_missing}")
  return()
endif()
set(KVTIDE_HAS_SERVE ON)
