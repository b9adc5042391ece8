# Finds CAF 0.17, whose Debian package brings neither a CMake package nor a
# pkg-config file.
#
#   find_package(CAF 0.17.6 EXACT REQUIRED COMPONENTS core [io] [openssl])
#
# Without components: core. Set CAF_ROOT if CAF lies in a prefix of its own.
#
# Imported targets: CAF::core, CAF::io, CAF::openssl, each if asked for.
# Variables: CAF_FOUND, CAF_VERSION, CAF_<component>_FOUND.

if(NOT CAF_FIND_COMPONENTS)
  set(CAF_FIND_COMPONENTS core)
endif()

find_path(CAF_INCLUDE_DIR caf/actor_system.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
mark_as_advanced(CAF_INCLUDE_DIR CAF_CORE_LIBRARY)

# A number such as 1706 in caf/config.hpp means 0.17.6. Later CAF keeps it
# elsewhere; then the version stays unknown and the check below fails.
unset(CAF_VERSION)
if(CAF_INCLUDE_DIR AND EXISTS "${CAF_INCLUDE_DIR}/caf/config.hpp")
  file(STRINGS "${CAF_INCLUDE_DIR}/caf/config.hpp" _caf_line
       REGEX "^#define CAF_VERSION [0-9]+")
  if(_caf_line MATCHES "CAF_VERSION ([0-9]+)")
    math(EXPR _caf_major "${CMAKE_MATCH_1} / 10000")
    math(EXPR _caf_minor "${CMAKE_MATCH_1} / 100 % 100")
    math(EXPR _caf_patch "${CMAKE_MATCH_1} % 100")
    set(CAF_VERSION "${_caf_major}.${_caf_minor}.${_caf_patch}")
  endif()
endif()

foreach(_caf_component IN LISTS CAF_FIND_COMPONENTS)
  string(TOUPPER "${_caf_component}" _caf_upper)
  if(NOT _caf_component STREQUAL "core")
    find_library(CAF_${_caf_upper}_LIBRARY caf_${_caf_component})
    mark_as_advanced(CAF_${_caf_upper}_LIBRARY)
  endif()
  if(CAF_${_caf_upper}_LIBRARY)
    set(CAF_${_caf_component}_FOUND TRUE)
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CAF
  REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR
  VERSION_VAR CAF_VERSION
  HANDLE_COMPONENTS REASON_FAILURE_MESSAGE
  "install libcaf-dev, or set CAF_ROOT to a prefix that has CAF 0.17.6")

if(CAF_FOUND)
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  # What each component needs; core must exist before the others name it.
  set(_caf_needs_core Threads::Threads)
  set(_caf_needs_io CAF::core)
  set(_caf_needs_openssl CAF::io OpenSSL::SSL)
  if("openssl" IN_LIST CAF_FIND_COMPONENTS)
    find_dependency(OpenSSL)
  endif()
  foreach(_caf_component IN LISTS CAF_FIND_COMPONENTS)
    string(TOUPPER "${_caf_component}" _caf_upper)
    if(CAF_${_caf_upper}_LIBRARY AND NOT TARGET CAF::${_caf_component})
      add_library(CAF::${_caf_component} UNKNOWN IMPORTED)
      set_target_properties(
        CAF::${_caf_component}
        PROPERTIES IMPORTED_LOCATION "${CAF_${_caf_upper}_LIBRARY}"
                   INTERFACE_INCLUDE_DIRECTORIES "${CAF_INCLUDE_DIR}"
                   INTERFACE_LINK_LIBRARIES "${_caf_needs_${_caf_component}}")
    endif()
  endforeach()
endif()
