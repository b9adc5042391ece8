# Runs kvtide-conformance on files that are wrong in one way each, and compares
# exit code and output.
#
#   cmake -D PROGRAM=<kvtide-conformance> -D SCRATCH=<folder> -P cli_test.cmake

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}/empty" "${SCRATCH}/two words/deep")

set(config [=[{"op":"config","name":"x","level":"host_pool","host_chunks":2,"policy":"lru","store_threshold":1}]=])
set(last_line "files=[0-9]+ lines=[0-9]+ mismatches=[0-9]+( unusable=[0-9]+)?\n$")

# Runs the program and demands an exit code and a regular expression that one of
# its two outputs matches.
function(demand code pattern)
  execute_process(
    COMMAND "${PROGRAM}" ${ARGN}
    RESULT_VARIABLE got
    OUTPUT_VARIABLE out
    ERROR_VARIABLE err
    TIMEOUT 60)
  if(NOT "${got}" STREQUAL "${code}")
    message(SEND_ERROR "${ARGN}: exit code ${got}, want ${code}\n${out}${err}")
  elseif(NOT "${out}" MATCHES "${pattern}" AND NOT "${err}" MATCHES "${pattern}")
    message(SEND_ERROR "${ARGN}: want ${pattern}, got\n${out}${err}")
  endif()
endfunction()

# The same for a file of these lines.
function(demand_of_file code pattern)
  list(JOIN ARGN "\n" text)
  file(WRITE "${SCRATCH}/case.jsonl" "${text}\n")
  demand(${code} "${pattern}" "${SCRATCH}/case.jsonl")
endfunction()

# -- files ---------------------------------------------------------------------

demand_of_file(
  0 "files=1 lines=2 mismatches=0\n$" "${config}"
  [=[{"op":"lookup_key","key":"00/0","expect":{"result":"miss"}}]=])
demand_of_file(
  1 "case.jsonl:2: lookup_key: result: got \"miss\", want \"hit\"\n"
  "${config}" [=[{"op":"lookup_key","key":"00/0","expect":{"result":"hit"}}]=])
demand_of_file(1 "files=1 lines=2 mismatches=1\n$" "${config}"
               [=[{"op":"take_events","expect":{"events":[{"removed":[]}]}}]=])
demand_of_file(2 "case.jsonl:2: unknown field 'colour'\n" "${config}"
               [=[{"op":"touch","keys":[],"colour":1}]=])
demand_of_file(2 "case.jsonl:2: unknown op 'jump' for level 'host_pool'\n"
               "${config}" [=[{"op":"jump"}]=])
demand_of_file(2 "case.jsonl:2: no field 'keys'\n" "${config}"
               [=[{"op":"touch"}]=])
demand_of_file(2 "case.jsonl:2: 'keys' is number, want a list\n" "${config}"
               [=[{"op":"touch","keys":1}]=])
demand_of_file(2 "case.jsonl:2: a second config\n" "${config}" "${config}")
demand_of_file(2 "case.jsonl:2: parse error" "${config}"
               [=[{"op":"touch","keys":]=])
demand_of_file(2 "case.jsonl:1: the first line must be the config\n"
               [=[{"op":"reset"}]=])
# Nothing was compared, and never a last line that looks like success.
demand_of_file(2 "files=1 lines=0 mismatches=0 unusable=1\n$" "")
file(WRITE "${SCRATCH}/empty.jsonl" "")
demand(2 "empty.jsonl:1: the file is empty\n$" "${SCRATCH}/empty.jsonl")

# -- paths ---------------------------------------------------------------------

file(WRITE "${SCRATCH}/two words/deep/b.jsonl" "${config}\n")
file(WRITE "${SCRATCH}/two words/a.jsonl" "${config}")
file(WRITE "${SCRATCH}/two words/NOTE.md" "Not a vector.\n")
demand(0 "files=2 lines=2 mismatches=0\n$" "${SCRATCH}/two words")
demand(0 "a.jsonl: x, 1 lines\n.*b.jsonl: x, 1 lines\n.*${last_line}" --list
       "${SCRATCH}/two words")
demand(0 "driver_scheduler -> cache_manager: open_pool\n.*${last_line}" --trace
       "${SCRATCH}/two words/a.jsonl")
demand(2 "missing: does not exist\n" "${SCRATCH}/missing")
demand(2 "empty: has no .*jsonl file in it\n" "${SCRATCH}/empty")
if(EXISTS /dev/null)
  demand(2 "/dev/null: is neither a file nor a directory\n" /dev/null)
endif()

# A link to a file is one; one that leads nowhere is a vector that is missing;
# what a search does not follow it names.
file(MAKE_DIRECTORY "${SCRATCH}/links/folder.jsonl")
file(CREATE_LINK "${SCRATCH}/two words/a.jsonl" "${SCRATCH}/links/a.jsonl"
     SYMBOLIC)
file(CREATE_LINK "${SCRATCH}/two words" "${SCRATCH}/links/more" SYMBOLIC)
demand(0 "files=1 lines=1 mismatches=0\n$" "${SCRATCH}/links")
demand(0 "^kvtide-conformance: [^\n]*links/more: skipped, a link to a directory\n$"
       "${SCRATCH}/links")
file(CREATE_LINK /dev/null "${SCRATCH}/links/device.jsonl" SYMBOLIC)
demand(0 "links/device.jsonl: skipped, not a file\n" "${SCRATCH}/links")
file(CREATE_LINK nowhere "${SCRATCH}/links/gone.jsonl" SYMBOLIC)
demand(2 "links/gone.jsonl: cannot be opened: No such file or directory\n"
       "${SCRATCH}/links")
demand(2 "files=2 lines=1 mismatches=0 unusable=1\n$" "${SCRATCH}/links")

# -- output --------------------------------------------------------------------

# A check that nobody could read has not passed.
if(EXISTS /dev/full)
  foreach(words IN ITEMS "" "--list" "--help")
    execute_process(
      COMMAND "${PROGRAM}" ${words} "${SCRATCH}/two words"
      RESULT_VARIABLE got
      OUTPUT_FILE /dev/full
      ERROR_VARIABLE err)
    if(NOT "${got}" STREQUAL "2"
       OR NOT "${err}" STREQUAL
          "kvtide-conformance: cannot write to standard output\n")
      message(SEND_ERROR "${words}: to /dev/full: exit code ${got}\n${err}")
    endif()
  endforeach()
endif()

# -- options -------------------------------------------------------------------

# One line that says which program speaks, what is wrong and where to look.
function(refuse pattern)
  demand(2 "^kvtide-conformance: [^\n]*${pattern}[^\n]*; see --help\n$" ${ARGN})
endfunction()

refuse("PATH is required")
demand(0 "Exit code: 0 if all answers are as expected" --help)
refuse("--colour" --colour "${SCRATCH}/two words")
refuse("two lines" "--two\nlines" "${SCRATCH}/two words")
refuse("--delivery: 1 required WORD missing" "${SCRATCH}/two words" --delivery)
# A word alone: neither another one nor the number behind it.
foreach(delivery IN ITEMS direct by_engine)
  demand(0 "mismatches=0\n$" --delivery ${delivery} "${SCRATCH}/two words")
endforeach()
demand(0 "--delivery WORD .*direct, by_engine; default direct" --help)
foreach(delivery IN ITEMS pigeon engine 0 1)
  refuse("--delivery: ${delivery} is none of direct, by_engine" --delivery
         ${delivery} "${SCRATCH}/two words")
endforeach()
