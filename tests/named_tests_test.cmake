# Runs named_tests.cmake on made-up trees: the clean one must pass, and each tree
# with one gap must fail and name it.
#
#   cmake -D SCRATCH=<folder> -P tests/named_tests_test.cmake

cmake_minimum_required(VERSION 3.25)

function(write_clean_tree)
  file(REMOVE_RECURSE "${SCRATCH}")
  file(WRITE "${SCRATCH}/tests/a_test.cpp"
       "\nTEST(Hazards, FIN_01_it_ends) {}\nTEST_F(Pool,\n       Pol01Keeps) {}\n"
       "RC_GTEST_PROP(Book, Balances, ()) {}\n")
  file(WRITE "${SCRATCH}/docs/rules.md"
       "R5 as in `core/x.hpp`; `Hazards.FIN_01_*`, `Pool`, `Book.Balances`\n")
  file(WRITE "${SCRATCH}/docs/ordering.md"
       "`R5`, `Hazards.FIN_01_it_ends`, `Book`\n")
  file(WRITE "${SCRATCH}/docs/hazards.md"
       "\n| FIN-01 | one; two | three | `Hazards.FIN_01_*` |"
       "\n| POL-01 | one | two | `Pool.Pol01*` |"
       "\n| MEM-01 | one | No test here: why. | |\n")
endfunction()

set(CHECK "${CMAKE_CURRENT_LIST_DIR}/named_tests.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/made_up_trees.cmake")

must_find(docs/rules.md "`Rules.R1_*`" "Rules.R1_")
must_find(docs/ordering.md "`Hazards.FIN_01_it`" "Hazards.FIN_01_it")
must_find(docs/rules.md "`JobTable`" JobTable)
must_find(docs/ordering.md "`JobTable`" JobTable)
must_find(docs/ordering.md "`Poo`" Poo)
must_find(docs/hazards.md "`JobTable`" JobTable)
must_find(docs/hazards.md "| FEN-01 | one | two | `Hazards.FIN_01_*` |" FEN-01)
must_find(docs/hazards.md "| FEN-01 | one | two | |" FEN-01)
must_find(tests/a_test.cpp "TEST(Hazards, FEN_02_it_flushes) {}" FEN_02)
must_find(tests/a_test.cpp "TEST(Pool, Pol03Evicts) {}" Pol03)
must_find(tests/a_test.cpp "RC_GTEST_PROP(Pool, Pol03Evicts, ()) {}" Pol03)

file(REMOVE_RECURSE "${SCRATCH}")
