# Runs readme.cmake on made-up trees: the clean one must pass, and each tree with
# one fault must fail and say so.
#
#   cmake -D SCRATCH=<folder> -P tests/examples/readme_test.cmake

cmake_minimum_required(VERSION 3.25)

function(write_clean_tree)
  file(REMOVE_RECURSE "${SCRATCH}")
  set(shown "#include <vector>\n\nint main() {\n  int a[] = {1, 2};\n}\n")
  file(WRITE "${SCRATCH}/examples/quickstart.cpp" "${shown}")
  file(WRITE "${SCRATCH}/README.md"
       "# k\n\n```cpp\nint before;\n```\n\n## Embed it\n\nSo:\n\n"
       "```cpp\n${shown}```\n\n## Licence\n")
endfunction()

set(CHECK "${CMAKE_CURRENT_LIST_DIR}/readme.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/../made_up_trees.cmake")

must_find(examples/quickstart.cpp "// Not shown." "does not show")
string(REPEAT "// One more.\n" 60 long)
must_find(examples/quickstart.cpp "${long}" "has 6[0-9] lines")
string(REPEAT "f();\n" 50 much)
must_find(examples/quickstart.cpp "${much}" "has 5[0-9] lines of code")

# What is shown is another section's, or none.
write_clean_tree()
file(READ "${SCRATCH}/README.md" text)
string(REPLACE "## Embed it" "## Embed" text "${text}")
file(WRITE "${SCRATCH}/README.md" "${text}")
run_on_tree(code said)
if(code EQUAL 0 OR NOT said MATCHES "does not show")
  message(SEND_ERROR "a README without the section passed:\n${said}")
endif()
