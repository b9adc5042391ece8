# Looks for the CUDA toolkit, on the PATH and where it is usually installed.
#
# Sets KVTIDE_HAS_CUDA; if it is true, the language CUDA is enabled, CUDA::cudart_static
# exists, and CMAKE_CUDA_ARCHITECTURES and KVTIDE_CUDA_INCLUDE_DIR are set.

set(KVTIDE_HAS_CUDA OFF)
set(_kvtide_cuda_oldest 12.8)

# Says why there will be no CUDA, and ends the configuration if it was asked for.
function(_kvtide_no_cuda why)
  if(KVTIDE_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "KVTIDE_WITH_CUDA is ON, but ${why}. Set CUDAToolkit_ROOT "
                        "to a toolkit ${_kvtide_cuda_oldest} or newer, or use AUTO.")
  endif()
  message(STATUS "kvtide: built without CUDA devices: ${why}")
endfunction()

if(KVTIDE_WITH_CUDA STREQUAL "OFF")
  return()
endif()

# An nvcc that is not on the PATH: CMake's own search stops there.
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  file(GLOB _kvtide_cuda_roots LIST_DIRECTORIES true "/usr/local/cuda-*" "/opt/cuda*")
  list(SORT _kvtide_cuda_roots COMPARE NATURAL ORDER DESCENDING)
  find_program(
    KVTIDE_NVCC nvcc
    HINTS "${CUDAToolkit_ROOT}" ENV CUDAToolkit_ROOT ENV CUDA_HOME ENV CUDA_PATH
    PATHS /usr/local/cuda ${_kvtide_cuda_roots}
    PATH_SUFFIXES bin)
  mark_as_advanced(KVTIDE_NVCC)
  if(KVTIDE_NVCC)
    # Not CMAKE_CUDA_COMPILER: check_language looks only while that is not set.
    set(ENV{CUDACXX} "${KVTIDE_NVCC}")
  endif()
endif()
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  _kvtide_no_cuda("no nvcc was found")
  return()
endif()

if(CMAKE_CUDA_COMPILER)
  set(_kvtide_nvcc "${CMAKE_CUDA_COMPILER}")
else()
  set(_kvtide_nvcc "$ENV{CUDACXX}")
endif()
if(NOT CUDAToolkit_ROOT)
  get_filename_component(CUDAToolkit_ROOT "${_kvtide_nvcc}" REALPATH)
  get_filename_component(CUDAToolkit_ROOT "${CUDAToolkit_ROOT}" DIRECTORY)
  get_filename_component(CUDAToolkit_ROOT "${CUDAToolkit_ROOT}" DIRECTORY)
endif()
find_package(CUDAToolkit QUIET)
if(NOT CUDAToolkit_FOUND OR NOT TARGET CUDA::cudart_static)
  _kvtide_no_cuda("${_kvtide_nvcc} comes without the runtime library")
  return()
endif()
if(CUDAToolkit_VERSION VERSION_LESS _kvtide_cuda_oldest)
  _kvtide_no_cuda("CUDA ${CUDAToolkit_VERSION} is older than ${_kvtide_cuda_oldest}")
  return()
endif()

# Machine code for these, and PTX for what comes after the newest.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  execute_process(
    COMMAND "${CUDAToolkit_NVCC_EXECUTABLE}" --list-gpu-arch
    OUTPUT_VARIABLE _kvtide_known
    ERROR_QUIET)
  set(_kvtide_architectures)
  foreach(_kvtide_one IN ITEMS 80 90 100 120)
    if(_kvtide_known MATCHES "compute_${_kvtide_one}\n")
      list(APPEND _kvtide_architectures ${_kvtide_one})
    endif()
  endforeach()
  if(NOT _kvtide_architectures)
    _kvtide_no_cuda("this nvcc knows none of the architectures 80, 90, 100, 120")
    return()
  endif()
  set(CMAKE_CUDA_ARCHITECTURES
      "${_kvtide_architectures}"
      CACHE STRING "CUDA architectures")
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  _kvtide_no_cuda("nvcc cannot compile with this compiler")
  return()
endif()
enable_language(CUDA)
list(GET CUDAToolkit_INCLUDE_DIRS 0 KVTIDE_CUDA_INCLUDE_DIR)
set(KVTIDE_HAS_CUDA ON)
