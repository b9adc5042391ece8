# Fails if docs/hazards.md, docs/rules.md or docs/ordering.md names a test or a
# suite that does not exist, if an entry of docs/hazards.md has no test of its own
# name and does not say why, or if a test is named after an entry that is not
# there.
#
#   cmake -D ROOT=<checkout> -P tests/named_tests.cmake

cmake_minimum_required(VERSION 3.25)

# -- what the sources have -----------------------------------------------------

# As "Suite.name".
set(tests)
set(macro "\n(TEST(_F|_P)?|RC_GTEST_PROP)\\([ \n]*")
file(GLOB_RECURSE sources "${ROOT}/tests/*_test.cpp")
foreach(source IN LISTS sources)
  file(READ "${source}" text)
  string(REGEX MATCHALL "${macro}[A-Za-z0-9_]+,[ \n]*[A-Za-z0-9_]+" found
               "${text}")
  foreach(one IN LISTS found)
    string(REGEX REPLACE "^${macro}" "" one "${one}")
    string(REGEX REPLACE ",[ \n]*" "." one "${one}")
    list(APPEND tests "${one}")
  endforeach()
endforeach()
set(suites ${tests})
list(TRANSFORM suites REPLACE "\\..*" "")

# -- what the pages say --------------------------------------------------------

# Tests named in `text`, with or without a star at the end.
function(read_patterns text variable)
  string(REGEX MATCHALL "`[A-Za-z_]+\\.[A-Za-z0-9_*]+`" found "${text}")
  string(REPLACE "`" "" found "${found}")
  # Files have a dot as well.
  list(FILTER found EXCLUDE REGEX "\\.(md|hpp|cpp)$")
  set(${variable}
      ${found}
      PARENT_SCOPE)
endfunction()

# Suites named in `text` without a test: in CamelCase, which nothing else has.
function(check_suites page text)
  string(REGEX MATCHALL "`[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*`" named "${text}")
  string(REPLACE "`" "" named "${named}")
  foreach(suite IN LISTS named)
    if(NOT suite IN_LIST suites)
      message(SEND_ERROR "${page}: there is no suite ${suite}")
    endif()
  endforeach()
endfunction()

function(check_patterns page text)
  read_patterns("${text}" patterns)
  foreach(pattern IN LISTS patterns)
    string(REPLACE "." "\\." regex "${pattern}")
    string(REGEX REPLACE "[*]$" "[A-Za-z0-9_]*" regex "${regex}")
    set(matching ${tests})
    list(FILTER matching INCLUDE REGEX "^${regex}$")
    if(NOT matching)
      message(SEND_ERROR "${page}: there is no test ${pattern}")
    endif()
  endforeach()
endfunction()

foreach(page IN ITEMS hazards ordering rules)
  file(READ "${ROOT}/docs/${page}.md" ${page})
  check_patterns(docs/${page}.md "${${page}}")
  check_suites(docs/${page}.md "${${page}}")
endforeach()

# -- entries -------------------------------------------------------------------

# A test of FIN-01 has FIN_01 or Fin01 at the start of its name.
function(spellings id variable)
  string(SUBSTRING "${id}" 0 1 first)
  string(SUBSTRING "${id}" 1 2 rest)
  string(SUBSTRING "${id}" 4 2 number)
  string(TOLOWER "${rest}" rest)
  string(REPLACE "-" "_" upper "${id}")
  set(${variable}
      "${upper}|${first}${rest}${number}"
      PARENT_SCOPE)
endfunction()

# A semicolon would end a list item.
string(REPLACE ";" "," hazards "${hazards}")
string(REGEX MATCHALL "\n[|] [A-Z][A-Z][A-Z]-[0-9][0-9] [|][^\n]*" rows
             "${hazards}")
if(NOT rows)
  message(SEND_ERROR "docs/hazards.md: no entry was found")
endif()
set(known)
foreach(row IN LISTS rows)
  string(REGEX MATCH "[A-Z][A-Z][A-Z]-[0-9][0-9]" id "${row}")
  spellings("${id}" names)
  list(APPEND known "${names}")
  read_patterns("${row}" patterns)
  list(FILTER patterns INCLUDE REGEX "\\.(${names})")
  if(NOT patterns AND NOT row MATCHES "No test here: ")
    message(SEND_ERROR "docs/hazards.md: ${id} has no test of its name and "
                       "does not say why")
  endif()
endforeach()

list(JOIN known "|" known)
set(numbered ${tests})
list(FILTER numbered INCLUDE REGEX
     "\\.([A-Z][A-Z][A-Z]_[0-9][0-9]_|[A-Z][a-z][a-z][0-9][0-9][A-Z])")
list(FILTER numbered EXCLUDE REGEX "\\.(${known})")
foreach(one IN LISTS numbered)
  message(SEND_ERROR "${one}: docs/hazards.md has no such entry")
endforeach()
