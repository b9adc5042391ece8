# Finds libnuma, which brings no CMake package.
#
#   find_package(Numa)
#
# Imported target: Numa::numa. Set Numa_ROOT for a prefix of its own.

find_path(Numa_INCLUDE_DIR numaif.h)
find_library(Numa_LIBRARY numa)
mark_as_advanced(Numa_INCLUDE_DIR Numa_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Numa
  REQUIRED_VARS Numa_LIBRARY Numa_INCLUDE_DIR
  REASON_FAILURE_MESSAGE
    "install libnuma-dev, or set Numa_ROOT to a prefix that has it")

if(Numa_FOUND AND NOT TARGET Numa::numa)
  add_library(Numa::numa UNKNOWN IMPORTED)
  set_target_properties(
    Numa::numa
    PROPERTIES IMPORTED_LOCATION "${Numa_LIBRARY}"
               INTERFACE_INCLUDE_DIRECTORIES "${Numa_INCLUDE_DIR}")
endif()
