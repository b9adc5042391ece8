# Tries the script CHECK on made-up trees in SCRATCH. Included by a test of that
# script, behind its function write_clean_tree(), which must pass.

function(run_on_tree result output)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "ROOT=${SCRATCH}" -P "${CHECK}"
    RESULT_VARIABLE code
    OUTPUT_VARIABLE text
    ERROR_VARIABLE text)
  set(${result}
      "${code}"
      PARENT_SCOPE)
  set(${output}
      "${text}"
      PARENT_SCOPE)
endfunction()

# With `line` at the end of `file`, the check must fail and say `ARGV2`; unless
# told, the name of the file.
function(must_find file line)
  set(said "${file}: ")
  if(ARGC GREATER 2)
    set(said "${ARGV2}")
  endif()
  write_clean_tree()
  file(APPEND "${SCRATCH}/${file}" "${line}\n")
  run_on_tree(code text)
  if(code EQUAL 0)
    message(SEND_ERROR "not found: ${file} with ${line}")
  elseif(NOT text MATCHES "${said}")
    message(SEND_ERROR "failed without saying ${said}:\n${text}")
  endif()
endfunction()

write_clean_tree()
run_on_tree(code text)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "the clean tree must pass, but:\n${text}")
endif()
