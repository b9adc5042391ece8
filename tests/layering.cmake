# Fails if a file includes what its folder must not know, or if the intent to
# store and the capability to store know each other's inputs.
#
#   cmake -D ROOT=<checkout> -P tests/layering.cmake
#
# The directions, from CONTRIBUTING.md:
#
#   core, gpu -> include        messages -> include, core
#   examples  -> include        actors   -> all four
#   capi      -> include                     net      -> include, core,
#                                                        messages, actors
#   CAF: messages, actors, net, tests       CUDA: gpu, tests/gpu
#   CAF's network and OpenSSL: net, tests/net

cmake_minimum_required(VERSION 3.25)

set(breaches 0)

function(report file what)
  file(RELATIVE_PATH name "${ROOT}" "${file}")
  message(SEND_ERROR "${name}: ${what}")
  math(EXPR breaches "${breaches} + 1")
  set(breaches
      ${breaches}
      PARENT_SCOPE)
endfunction()

# Lines of `file` without comments, as a list. Brackets and semicolons would
# join or split list items, so they become blanks.
function(read_code file variable)
  file(READ "${file}" text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "[][;]" " " text "${text}")
  string(REPLACE "\n" ";" text "${text}")
  set(${variable}
      "${text}"
      PARENT_SCOPE)
endfunction()

# Names in quotes or angle brackets that `file` includes.
function(read_includes file variable)
  read_code("${file}" lines)
  set(names)
  foreach(line IN LISTS lines)
    if(line MATCHES "^[ \t]*#[ \t]*include[ \t]*([\"<][^\">]+)[\">]")
      list(APPEND names "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  set(${variable}
      "${names}"
      PARENT_SCOPE)
endfunction()

# -- include directions --------------------------------------------------------

set(folders actors bench capi core examples gpu include messages net tests)

# Project folders that each folder may include. The public headers, included as
# "kvtide/...", are open to all.
set(may_include_actors actors core gpu messages)
set(may_include_bench ${folders})
# What C sees is what C++ sees: it knows the interface and nothing below.
set(may_include_capi capi)
set(may_include_core core)
set(may_include_examples examples)
set(may_include_gpu gpu)
set(may_include_include "")
# Messages carry the value types that core's functions take and give.
set(may_include_messages core messages)
set(may_include_net actors core messages net)
set(may_include_tests ${folders})

set(may_use_caf actors bench messages net tests)
# Folders by their path, with all that lies in them. Whoever else used it would
# bring sockets into the library.
set(may_use_sockets net tests/net)
# Folders by their path, with all that lies in them.
set(may_use_cuda gpu tests/gpu)

# Public headers need nothing that an embedder may lack: no package, no system
# header. Those of the standard library have plain names; what C has in common
# with C++17 ends in .h.
set(c_headers stdbool.h stddef.h stdint.h)

function(check_file folder file)
  read_includes("${file}" names)
  foreach(name IN LISTS names)
    string(SUBSTRING "${name}" 1 -1 path)
    string(REGEX MATCH "^[^/]*" first "${path}")
    if(folder STREQUAL "include"
       AND NOT name MATCHES "^\"kvtide/"
       AND NOT name MATCHES "^<[a-z_0-9]+$"
       AND NOT path IN_LIST c_headers)
      report("${file}" "includes ${path}; public headers have themselves and the "
                       "standard library")
      continue()
    endif()
    if(path MATCHES "(^|/)\\.\\./")
      report("${file}" "includes ${path}; name headers from the checkout's root")
    elseif(path MATCHES "^(caf/io|caf/openssl|openssl)/")
      list(JOIN may_use_sockets "|" socket_folders)
      file(RELATIVE_PATH place "${ROOT}" "${file}")
      if(NOT place MATCHES "^(${socket_folders})/")
        report("${file}" "includes ${path}; no sockets in ${folder}/")
      endif()
    elseif(first STREQUAL "caf")
      if(NOT folder IN_LIST may_use_caf)
        report("${file}" "includes ${path}; no CAF in ${folder}/")
      endif()
    elseif(path MATCHES "^(cuda|cublas|nvtx|nvToolsExt|driver_types|cooperative)")
      list(JOIN may_use_cuda "|" cuda_folders)
      file(RELATIVE_PATH place "${ROOT}" "${file}")
      if(NOT place MATCHES "^(${cuda_folders})/")
        report("${file}" "includes ${path}; no CUDA in ${folder}/")
      endif()
    elseif(first IN_LIST folders AND path MATCHES "/")
      if(NOT first IN_LIST may_include_${folder})
        report("${file}" "includes ${path}, which ${folder}/ must not know")
      endif()
    endif()
  endforeach()
  set(breaches
      ${breaches}
      PARENT_SCOPE)
endfunction()

foreach(folder IN LISTS folders)
  file(GLOB_RECURSE files "${ROOT}/${folder}/*.hpp" "${ROOT}/${folder}/*.cpp"
       "${ROOT}/${folder}/*.h" "${ROOT}/${folder}/*.cu")
  foreach(file IN LISTS files)
    check_file(${folder} "${file}")
  endforeach()
endforeach()

# -- intent and capability -----------------------------------------------------

# Adds to `variable` the project headers that `file` reaches through includes.
function(reach file variable)
  set(seen ${${variable}})
  read_includes("${file}" names)
  foreach(name IN LISTS names)
    string(SUBSTRING "${name}" 1 -1 path)
    foreach(base IN ITEMS "${ROOT}" "${ROOT}/include")
      if(EXISTS "${base}/${path}" AND NOT path IN_LIST seen)
        list(APPEND seen "${path}")
        reach("${base}/${path}" seen)
      endif()
    endforeach()
  endforeach()
  set(${variable}
      ${seen}
      PARENT_SCOPE)
endfunction()

# Neither file of `unit` reaches a header that is listed in `headers` or speaks
# of `types`, nor itself names something with one of `words` in it. Comments may.
function(keep_apart unit headers types words why)
  foreach(file IN ITEMS "${ROOT}/core/${unit}.hpp" "${ROOT}/core/${unit}.cpp")
    if(EXISTS "${file}")
      set(reached "")
      reach("${file}" reached)
      foreach(path IN LISTS reached)
        if(path MATCHES "^(${headers})\\.hpp$")
          report("${file}" "reaches ${path}; ${why}")
        else()
          set(header "${ROOT}/${path}")
          if(NOT EXISTS "${header}")
            set(header "${ROOT}/include/${path}")
          endif()
          read_code("${header}" lines)
          if(NOT path MATCHES "^core/${unit}" AND lines MATCHES "${types}")
            report("${file}"
                   "reaches ${path}, which has ${CMAKE_MATCH_0}; ${why}")
          endif()
        endif()
      endforeach()
      read_code("${file}" lines)
      foreach(line IN LISTS lines)
        if(line MATCHES "(^|[^A-Za-z0-9_])([A-Za-z0-9_]*(${words})[A-Za-z0-9_]*)")
          report("${file}" "names ${CMAKE_MATCH_2}; ${why}")
        endif()
      endforeach()
    endif()
  endforeach()
  set(breaches
      ${breaches}
      PARENT_SCOPE)
endfunction()

keep_apart(
  store_intent "core/store_capability|core/layout|kvtide/job"
  "block_table|store_capability" "block|chunk|draft|capability"
  "the intent to store never sees blocks or chunks")
keep_apart(
  store_capability "core/store_intent|core/rules" "finish_reason|store_intent"
  "finish|reason|abort|intent"
  "what can be stored does not depend on how a request ended")

if(breaches EQUAL 0)
  message(STATUS "layering: no breach")
endif()
