# Runs layering.cmake on made-up trees: the clean one must pass, and each tree
# with one breach must fail and name the file.
#
#   cmake -D SCRATCH=<folder> -P tests/layering_test.cmake

cmake_minimum_required(VERSION 3.25)

function(write_clean_tree)
  file(REMOVE_RECURSE "${SCRATCH}")
  file(WRITE "${SCRATCH}/include/kvtide/ids.hpp" "#include <cstdint>\n")
  file(WRITE "${SCRATCH}/include/kvtide/finish.hpp" "enum class finish_reason;\n")
  file(WRITE "${SCRATCH}/core/key_list.hpp" "#include \"kvtide/ids.hpp\"\n")
  file(WRITE "${SCRATCH}/core/layout.hpp" "#include \"kvtide/ids.hpp\"\n")
  file(WRITE "${SCRATCH}/core/store_intent.hpp"
       "#include \"kvtide/finish.hpp\"\nint intent(); // no block table here\n")
  file(WRITE "${SCRATCH}/core/store_capability.hpp"
       "#include \"core/layout.hpp\"\nint chunks(); // not a finish reason\n")
  file(WRITE "${SCRATCH}/messages/m.hpp"
       "#include \"core/key_list.hpp\"\n#include <caf/all.hpp>\n")
  file(WRITE "${SCRATCH}/gpu/g.cpp"
       "#include \"kvtide/ids.hpp\"\n#include <cuda_runtime_api.h>\n")
  file(WRITE "${SCRATCH}/actors/a.cpp"
       "#include \"core/layout.hpp\"\n#include \"messages/m.hpp\"\n"
       "#include \"gpu/g.hpp\"\n")
  file(WRITE "${SCRATCH}/capi/c.cpp"
       "#include \"kvtide/ids.hpp\"\n#include \"capi/c.hpp\"\n")
  file(WRITE "${SCRATCH}/net/n.cpp"
       "#include \"actors/a.hpp\"\n#include \"messages/m.hpp\"\n"
       "#include <caf/io/all.hpp>\n#include <openssl/ssl.h>\n")
  file(WRITE "${SCRATCH}/examples/e.cpp"
       "#include \"kvtide/ids.hpp\"\n#include \"model.hpp\"\n")
  file(WRITE "${SCRATCH}/tests/t.cpp" "#include \"actors/a.hpp\"\n")
  file(WRITE "${SCRATCH}/tests/gpu/t.cpp" "#include <cuda_runtime_api.h>\n")
endfunction()

set(CHECK "${CMAKE_CURRENT_LIST_DIR}/layering.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/made_up_trees.cmake")

must_find(include/kvtide/ids.hpp "#include \"core/layout.hpp\"")
must_find(include/kvtide/ids.hpp "#include <caf/actor.hpp>")
must_find(include/kvtide/ids.hpp "#include <cuda_runtime.h>")
must_find(include/kvtide/ids.hpp "#include <spdlog/spdlog.h>")
must_find(include/kvtide/ids.hpp "#include <fmt/core.h>")
must_find(include/kvtide/ids.hpp "#include <sys/eventfd.h>")
must_find(include/kvtide/ids.hpp "#include <unistd.h>")
must_find(include/kvtide/ids.hpp "#include \"ids.hpp\"")
must_find(core/layout.hpp "#include \"messages/m.hpp\"")
must_find(core/layout.hpp "#include \"gpu/g.hpp\"")
must_find(core/layout.hpp "# include <caf/all.hpp>")
must_find(core/layout.hpp "#include \"../actors/a.hpp\"")
must_find(messages/m.hpp "#include \"actors/a.hpp\"")
must_find(messages/m.hpp "#include <cuda_runtime.h>")
must_find(gpu/g.cpp "#include \"core/key_list.hpp\"")
must_find(gpu/g.cpp "#include \"messages/m.hpp\"")
must_find(gpu/g.cpp "#include <caf/all.hpp>")
must_find(actors/a.cpp "#include <cuda_runtime_api.h>")
must_find(actors/a.cpp "#include \"tests/support/x.hpp\"")
must_find(capi/c.cpp "#include \"actors/a.hpp\"")
must_find(capi/c.cpp "#include \"core/layout.hpp\"")
must_find(capi/c.cpp "#include <caf/all.hpp>")
must_find(capi/c.cpp "#include <cuda.h>")
must_find(actors/a.cpp "#include \"capi/c.hpp\"")
must_find(net/n.cpp "#include \"gpu/g.hpp\"")
must_find(net/n.cpp "#include <cuda_runtime.h>")
must_find(actors/a.cpp "#include \"net/n.hpp\"")
must_find(actors/a.cpp "#include <caf/io/all.hpp>")
must_find(actors/a.cpp "#include <openssl/ssl.h>")
must_find(messages/m.hpp "#include <caf/openssl/all.hpp>")
must_find(examples/e.cpp "#include <caf/io/all.hpp>")
must_find(tests/t.cpp "#include <caf/io/middleman.hpp>")
must_find(examples/e.cpp "#include \"core/layout.hpp\"")
must_find(examples/e.cpp "#include <caf/all.hpp>")
must_find(tests/t.cpp "#include <cuda.h>")
must_find(tests/core/gpu/t.cpp "#include <cuda.h>")
must_find(bench/copy/b.cpp "#include <cuda_runtime.h>")

# Intent and capability: directly, through another header, and by name.
must_find(core/store_intent.hpp "#include \"core/store_capability.hpp\"")
must_find(core/store_intent.hpp "#include \"core/layout.hpp\"")
must_find(core/store_intent.hpp "int f(const block_table& blocks);")
must_find(core/store_intent.hpp "int f(int first_chunk);")
must_find(core/store_capability.hpp "#include \"core/store_intent.hpp\"")
must_find(core/store_capability.hpp "#include \"kvtide/finish.hpp\"")
must_find(core/store_capability.hpp "int f(kvtide::finish_reason reason);")
must_find(core/layout.hpp "#include \"kvtide/finish.hpp\""
          "store_capability.hpp: reaches kvtide/finish.hpp")

file(REMOVE_RECURSE "${SCRATCH}")
