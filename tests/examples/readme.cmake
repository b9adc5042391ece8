# Fails unless README.md shows examples/quickstart.cpp as it is, and that file is
# as short as it is promised: under 60 lines, of which at most 50 embed the library.
#
#   cmake -D ROOT=<checkout> -P tests/examples/readme.cmake

cmake_minimum_required(VERSION 3.25)

# The first C++ block of README.md's section "Embed it"; empty if there is none.
function(read_shown variable)
  file(READ "${ROOT}/README.md" text)
  string(FIND "${text}" "\n## Embed it\n" section)
  set(shown "")
  if(NOT section EQUAL -1)
    string(SUBSTRING "${text}" ${section} -1 text)
    string(FIND "${text}" "\n```cpp\n" begin)
    if(NOT begin EQUAL -1)
      math(EXPR begin "${begin} + 8")
      string(SUBSTRING "${text}" ${begin} -1 text)
      string(FIND "${text}" "```\n" end)
      string(SUBSTRING "${text}" 0 ${end} shown)
    endif()
  endif()
  set(${variable}
      "${shown}"
      PARENT_SCOPE)
endfunction()

# Lines of a text that ends with one.
function(count_lines variable text)
  string(REGEX REPLACE "[^\n]" "" ends "${text}")
  string(LENGTH "${ends}" count)
  set(${variable}
      ${count}
      PARENT_SCOPE)
endfunction()

read_shown(shown)
file(READ "${ROOT}/examples/quickstart.cpp" there)
if(NOT shown STREQUAL there)
  message(SEND_ERROR "README.md, \"Embed it\", does not show "
                     "examples/quickstart.cpp; copy it there")
endif()

count_lines(lines "${there}")
if(NOT lines LESS 60)
  message(SEND_ERROR "examples/quickstart.cpp has ${lines} lines; keep it "
                     "under 60")
endif()

# Neither blank, nor a comment alone, nor an include.
string(REGEX REPLACE "\n[ ]*(//|#include)[^\n]*" "\n" code "\n${there}")
string(REGEX REPLACE "\n[ \n]*\n" "\n" code "${code}")
string(REGEX REPLACE "^\n" "" code "${code}")
count_lines(code_lines "${code}")
if(code_lines GREATER 50)
  message(SEND_ERROR "examples/quickstart.cpp has ${code_lines} lines of code; "
                     "embedding takes at most 50")
endif()
message(STATUS "readme: ${lines} lines, ${code_lines} of code")
