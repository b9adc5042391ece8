#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0

# Builds what needs no CAF, and checks and measures it on a GPU. See --help.

# Functions that are exported, and those of traps, look unused.
# shellcheck disable=SC2012,SC2016,SC2317

set -u
export LC_ALL=C

usage() {
  cat <<'END'
tools/gpu-check.sh [options]           on a machine with a GPU
tools/gpu-check.sh --pack [FOLDER]     on a machine with packages

On a GPU: builds the component gpu, runs the contract suite of the copy engines
and bench-copy, and the suite once more under compute-sanitizer where there is
one; then prints one table. Needs a CUDA toolkit of 12.8 or newer, g++ 12 or
newer and neither network, CMake, CAF nor GoogleTest.

--pack collects the GoogleTest sources of Debian's package googletest in
FOLDER/googletest (.carry/ of this checkout, which git ignores). Take it along with
the checkout.

  --out FOLDER        logs and results; the build goes into FOLDER/gpu-check
                      (build/gpu-check of this checkout)
  --carry FOLDER      what --pack collected (.carry/, else Debian's own folder)
  --jobs N            compilers at a time (one per core)
  --limit SECONDS     for everything, at least 60 (450)
  --quick             few copies: whether it works, not how fast
  --without-cmake     build by hand although there is a CMake
  --without-sanitizer
  --help

Ends with 0; with 1 if a step failed; with 2 if an option is wrong; with 77 if
all was built and there is no GPU; with 130 if it was interrupted.
END
}

die() {
  echo "gpu-check: $*" >&2
  exit 2
}

number() { # option value least
  if [[ ! $2 =~ ^[0-9]{1,6}$ ]] || ((10#$2 < $3)); then
    die "$1 takes a number from $3 on, not '$2'; see --help"
  fi
}

# Folders are named from where the caller is; all else lies in the checkout.
from_here() { # folder
  if [[ $1 == /* ]]; then
    echo "$1"
  else
    echo "$PWD/$1"
  fi
}
debian_sources=/usr/src/googletest

# -- options -------------------------------------------------------------------

mode=run
out=
carry=
jobs=$(nproc 2>/dev/null || echo 4)
limit=450
quick=
with_cmake=yes
with_sanitizer=yes

while (($# > 0)); do
  case $1 in
    --out | --carry | --jobs | --limit)
      if (($# < 2)) || [[ -z $2 ]]; then
        die "$1 takes a value; see --help"
      fi
      case $1 in
        --out) out=$(from_here "$2") ;;
        --carry) carry=$(from_here "$2") ;;
        --jobs) number "$1" "$2" 1 && jobs=$((10#$2)) ;;
        --limit) number "$1" "$2" 60 && limit=$((10#$2)) ;;
      esac
      shift
      ;;
    --pack)
      mode=pack
      if (($# > 1)) && [[ $2 != --* ]]; then
        [[ -n $2 ]] || die "--pack takes a folder or nothing; see --help"
        carry=$(from_here "$2")
        shift
      fi
      ;;
    --quick) quick=yes ;;
    --without-cmake) with_cmake= ;;
    --without-sanitizer) with_sanitizer= ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) die "there is no option $1; see --help" ;;
  esac
  shift
done

cd "$(dirname "$0")/.." || exit 2
root=$PWD
out=${out:-$root/build/gpu-check}

is_writable() { # folder
  mkdir -p "$1" 2>/dev/null && [[ -w $1 ]]
}

# -- pack ----------------------------------------------------------------------

# Shows which folder may be removed again.
mark=.packed-by-gpu-check

if [[ $mode == pack ]]; then
  to=${carry:-$root/.carry}
  [[ -f $debian_sources/googletest/src/gtest-all.cc ]] || {
    echo "gpu-check: $debian_sources is missing: install Debian's package" \
      "googletest (it comes with libgtest-dev)" >&2
    exit 1
  }
  if [[ -e $to/googletest && ! -e $to/googletest/$mark ]]; then
    die "$to/googletest is there and was not made by --pack: choose another folder"
  fi
  is_writable "$to" || die "cannot write into $to"
  rm -rf "${to:?}/googletest" && mkdir "$to/googletest" \
    && touch "$to/googletest/$mark" || exit 1
  for part in googletest googlemock; do
    mkdir -p "$to/googletest/$part" \
      && cp -r "$debian_sources/$part/src" "$to/googletest/$part/" \
      && cp -rL "$debian_sources/$part/include" "$to/googletest/$part/" \
      || exit 1
  done
  # Its licence travels with it.
  cp /usr/share/doc/googletest/copyright "$to/googletest/LICENSE" || exit 1
  echo "GoogleTest is in $to/googletest ($(du -sh "$to/googletest" | cut -f1))."
  exit 0
fi

# -- steps ---------------------------------------------------------------------

is_writable "$out" || die "cannot write into $out"
out=$(cd "$out" && pwd)
# What is removed and made again lies apart from what the caller may keep here.
made=$out/gpu-check
mkdir -p "$made" || exit 2
started=$SECONDS
worst=0
child=
rows=()

say() {
  printf '[%3d s] %s\n' $((SECONDS - started)) "$*" >&2
}

row() { # step, result, seconds, detail
  rows+=("$(printf '%-18s | %-7s | %5s | %s' "$1" "$2" "$3" "$4")")
}

print_table() {
  local one
  printf '\n%-18s | %-7s | %5s | %s\n' step result s detail
  printf -- '-------------------+---------+-------+-----------------------\n'
  for one in "${rows[@]}"; do
    printf '%s\n' "$one"
  done
  printf 'logs and results: %s\n' "$out"
}

failed() { # step, seconds, detail
  row "$1" FAILED "$2" "$3"
  worst=1
}

interrupt() {
  trap - INT TERM
  if [[ -n $child ]]; then
    # timeout(1) hands it on to all that it started.
    kill -TERM "$child" 2>/dev/null
    wait "$child" 2>/dev/null
  fi
  row interrupted - $((SECONDS - started)) "the rest was not run"
  print_table
  exit 130
}
trap interrupt INT TERM

left() {
  echo $((limit - (SECONDS - started)))
}

# Runs a command with its output in a log, and says now and then that it is not
# dead. Sets `took`. The result is the command's, or 124 after the time.
took=0
run() { # name, most seconds, command...
  local name=$1 most=$2 begin=$SECONDS told=$SECONDS rc
  shift 2
  (($(left) < most)) && most=$(left)
  if ((most < 1)); then
    took=0
    return 124
  fi
  say "$name ..."
  timeout -k 10 "$most" "$@" >"$out/$name.log" 2>&1 </dev/null &
  child=$!
  while kill -0 "$child" 2>/dev/null; do
    sleep 0.2
    if ((SECONDS - told >= 15)); then
      told=$SECONDS
      say "$name ... $(tail -c 300 "$out/$name.log" | tail -n 1 | cut -c1-60)"
    fi
  done
  wait "$child"
  rc=$?
  child=
  took=$((SECONDS - begin))
  return "$rc"
}

why() { # log: its last lines, for the eye
  tail -n 25 "$out/$1.log" | sed 's/^/    /' >&2
}

# -- what is here --------------------------------------------------------------

find_nvcc() {
  local one
  for one in "${CUDACXX:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc \
    $(ls -d /usr/local/cuda-*/bin/nvcc 2>/dev/null | sort -rV); do
    if [[ -n $one && -x $one ]]; then
      readlink -f "$one"
      return
    fi
  done
}

nvcc=$(find_nvcc)
[[ -n $nvcc ]] || {
  echo "gpu-check: no nvcc on the PATH or in /usr/local/cuda: install a CUDA" \
    "toolkit, or set CUDACXX" >&2
  exit 1
}
cxx=${CXX:-g++}
command -v "$cxx" >/dev/null || {
  echo "gpu-check: '$cxx' is missing: install it, or set CXX to one program," \
    "without options" >&2
  exit 1
}

[[ -z $carry || -d $carry ]] || die "there is no folder $carry (--carry)"
googletest=
for one in "${carry:-.carry}/googletest" ${carry:+"$carry"} "$debian_sources"; do
  if [[ -f $one/googletest/src/gtest-all.cc ]]; then
    googletest=$(cd "$one" && pwd)
    break
  fi
done
[[ -n $googletest ]] || {
  echo "gpu-check: no GoogleTest source: run tools/gpu-check.sh --pack where" \
    "Debian's package googletest is, and take .carry/ along" >&2
  exit 1
}

# Only for the GPU that is here: nvcc takes as long for each architecture.
gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap \
  --format=csv,noheader 2>/dev/null | head -n 1)
arch=$(sed -n 's/.*, *\([0-9]*\)\.\([0-9]*\)$/\1\2/p' <<<"$gpu")
arch=${arch:-90}
row machine - 0 "$(uname -m), $(nproc) cores, ${gpu:-no GPU that nvidia-smi knows}"
row toolkit - 0 "$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/nvcc \1/p'), \
$("$cxx" --version | head -n 1), architecture $arch"

# -- build ---------------------------------------------------------------------

# The steps run in a shell of their own, so that their time can be limited.
export root made nvcc cxx arch jobs googletest

cmake_is_new_enough() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n '1s/.*version //p')
  [[ -n $version && $(printf '3.25\n%s\n' "$version" | sort -V | head -n 1) == 3.25 ]]
}

# The four libraries, and what tells CMake of them.
build_googletest() {
  set -e
  local here=$made/googletest test=$googletest/googletest mock=$googletest/googlemock
  mkdir -p "$here/include" "$here/lib"
  cp -rL "$test/include/gtest" "$mock/include/gmock" "$here/include/"
  local flags=(-std=c++17 -O1 -pthread "-I$here/include" "-I$test" "-I$mock")
  local one file pids=()
  for one in gtest:"$test/src/gtest-all.cc" gtest_main:"$test/src/gtest_main.cc" \
    gmock:"$mock/src/gmock-all.cc" gmock_main:"$mock/src/gmock_main.cc"; do
    file=$here/${one%%:*}.o
    (
      "$cxx" "${flags[@]}" -c "${one#*:}" -o "$file" \
        && ar rcs "$here/lib/lib${one%%:*}.a" "$file"
    ) &
    pids+=($!)
  done
  for one in "${pids[@]}"; do
    wait "$one"
  done
  cat >"$here/GTestConfig.cmake" <<'END'
foreach(_one IN ITEMS gtest gtest_main gmock gmock_main)
  if(NOT TARGET GTest::${_one})
    add_library(GTest::${_one} STATIC IMPORTED)
    set_target_properties(
      GTest::${_one}
      PROPERTIES IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/lib/lib${_one}.a"
                 INTERFACE_INCLUDE_DIRECTORIES
                 "${CMAKE_CURRENT_LIST_DIR}/include")
  endif()
endforeach()
find_package(Threads REQUIRED)
target_link_libraries(GTest::gtest INTERFACE Threads::Threads)
foreach(_one IN ITEMS gtest_main gmock gmock_main)
  target_link_libraries(GTest::${_one} INTERFACE GTest::gtest)
endforeach()
END
}
export -f build_googletest

build_with_cmake() {
  set -e
  local generator=()
  command -v ninja >/dev/null && generator=(-G Ninja)
  cmake -S "$root" -B "$made/cmake" "${generator[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CUDA_COMPILER="$nvcc" \
    -DCMAKE_CUDA_HOST_COMPILER="$cxx" -DCMAKE_CUDA_ARCHITECTURES="$arch" \
    -DKVTIDE_ONLY_GPU=ON -DKVTIDE_WITH_CUDA=ON -DKVTIDE_BUILD_EXAMPLES=OFF \
    -DGTest_DIR="$made/googletest" -DKVTIDE_INSTALL=OFF
  cmake --build "$made/cmake" -j "$jobs" --target gpu_device_tests bench-copy
  mkdir -p "$made/bin"
  cp "$made/cmake/bin/gpu_device_tests" "$made/cmake/bin/bench-copy" "$made/bin/"
}
export -f build_with_cmake

# Sources that a CMakeLists.txt lists, one per line, between a line that matches
# and the next closing bracket: what there is to build is said in one place.
listed() { # folder, expression
  awk -v start="$2" -v folder="$1" '
    on && match($0, /[A-Za-z0-9_\/]+\.(cpp|cu)/) {
      print folder "/" substr($0, RSTART, RLENGTH)
    }
    $0 ~ start { on = 1 }
    /\)/ { on = 0 }' "$root/$1/CMakeLists.txt"
}
export -f listed

compile_one() { # source, from the checkout
  local object=$made/by-hand/$1.o
  mkdir -p "${object%/*}"
  case $1 in
    *.cu)
      "$nvcc" -ccbin "$cxx" -std=c++20 -O3 -DNDEBUG "-arch=sm_$arch" -I. -Iinclude \
        -c "$1" -o "$object"
      ;;
    *)
      "$cxx" -std=c++20 -O3 -DNDEBUG -Wall -Wextra -pthread -I. -Iinclude \
        -isystem "$made/googletest/include" -isystem "${nvcc%/bin/nvcc}/include" \
        -c "$1" -o "$object"
      ;;
  esac && echo "$1"
}
export -f compile_one

link() { # program, sources
  local program=$1
  shift
  local objects=("${@/#/$made/by-hand/}")
  "$nvcc" -ccbin "$cxx" -o "$made/bin/$program" "${objects[@]/%/.o}" \
    "-L$made/googletest/lib" -lgtest_main -lgmock -lgtest -lpthread
}
export -f link

build_by_hand() {
  set -e -o pipefail
  cd "$root"
  mkdir -p "$made/bin" "$made/by-hand"
  local one
  local -a library=() tests bench
  # Both folders are what their CMakeLists.txt list, but for what speaks for
  # builds without CUDA.
  for one in gpu/*.cpp gpu/cuda/*.cpp gpu/cuda/*.cu; do
    [[ $one == gpu/cuda/no_cuda.cpp ]] || library+=("$one")
  done
  mapfile -t tests < <(listed tests/gpu '^ *gpu_device_tests$')
  mapfile -t bench < <(listed bench/copy '^set.(_sources|_cuda_sources)$')
  bench+=(bench/copy/decode_graph.cu)
  ((${#tests[@]} > 3 && ${#bench[@]} > 10)) || {
    echo "the lists of sources in CMakeLists.txt are not as expected"
    exit 1
  }
  printf '%s\0' "${library[@]}" "${tests[@]}" "${bench[@]}" \
    | xargs -0 -n 1 -P "$jobs" \
      bash -c 'compile_one "$1" || exit 255' bash
  link gpu_device_tests "${library[@]}" "${tests[@]}"
  link bench-copy "${library[@]}" "${bench[@]}"
}
export -f build_by_hand

end_early() {
  why "$1"
  print_table
  exit 1
}

if run googletest 120 bash -c build_googletest; then
  row googletest ok "$took" "from $googletest"
else
  failed googletest "$took" "see googletest.log"
  end_early googletest
fi

rm -rf "${made:?}/bin"
built=
if [[ -n $with_cmake ]] && cmake_is_new_enough; then
  if run build "$limit" bash -c build_with_cmake; then
    row build ok "$took" "by CMake: gpu_device_tests, bench-copy"
    built=yes
  else
    # A CMake that does not find its way through this toolkit is no fault of what
    # is to be checked.
    mv "$out/build.log" "$out/build-cmake.log"
    say "CMake failed, see build-cmake.log; building by hand"
    row build failed "$took" "by CMake, see build-cmake.log"
  fi
fi
if [[ -z $built ]]; then
  if run build "$limit" bash -c build_by_hand; then
    row build ok "$took" "by hand: gpu_device_tests, bench-copy"
  else
    failed build "$took" "see build.log"
    end_early build
  fi
fi

# -- check ---------------------------------------------------------------------

device_tests=$made/bin/gpu_device_tests
bench_copy=$made/bin/bench-copy

# What a run of GoogleTest says of itself.
outcome() { # log
  awk '/^\[  PASSED  \]/ { passed = $4 }
    /^\[  SKIPPED \] [0-9]+ test/ { skipped = $4 }
    /^\[  FAILED  \] [0-9]+ test/ { failed = $4 }
    END { printf "%d passed, %d failed, %d skipped", passed, failed, skipped }' "$1"
}

run device 60 "$bench_copy" --device cuda --only copies --quick --batch 64K \
  --fragments 4K --paths plain
have_gpu=$?
case $have_gpu in
  0) row device ok "$took" "$(sed -n 's/^device *//p' "$out/device.log")" ;;
  77)
    row device none "$took" "$(tail -n 1 "$out/device.log")"
    ;;
  *)
    failed device "$took" "ended with $have_gpu, see device.log"
    why device
    ;;
esac

run contract 240 "$device_tests" --gtest_color=no --gtest_brief=0
rc=$?
if ((rc == 124)); then
  failed contract "$took" "out of time; $(outcome "$out/contract.log")"
elif ((rc != 0)); then
  failed contract "$took" "$(outcome "$out/contract.log"), see contract.log"
  grep '^\[  FAILED  \]' "$out/contract.log" | sort -u | head -n 20 >&2
elif ((have_gpu == 77)); then
  row contract skipped "$took" "$(outcome "$out/contract.log")"
else
  row contract ok "$took" "$(outcome "$out/contract.log")"
fi

if ((have_gpu == 77)); then
  row bench-copy skipped 0 "there is no GPU"
else
  options=(--device cuda --json "$out/copy.json")
  [[ -n $quick ]] && options+=(--quick)
  run copy 240 "$bench_copy" "${options[@]}"
  rc=$?
  if ((rc == 0)); then
    row bench-copy ok "$took" "copy.log, copy.json"
  else
    failed bench-copy "$took" "ended with $rc, see copy.log"
    why copy
  fi
fi

sanitizer=
for one in "$(command -v compute-sanitizer)" "${nvcc%/nvcc}/compute-sanitizer" \
  "${nvcc%/bin/nvcc}/compute-sanitizer/compute-sanitizer"; do
  if [[ -z $sanitizer && -n $one && -x $one && ! -d $one ]]; then
    sanitizer=$one
  fi
done
if ((have_gpu == 77)); then
  row sanitizer skipped 0 "there is no GPU"
elif [[ -z $with_sanitizer ]]; then
  row sanitizer skipped 0 "not wanted"
elif [[ -z $sanitizer ]]; then
  row sanitizer skipped 0 "there is no compute-sanitizer"
elif (($(left) < 20)); then
  row sanitizer skipped 0 "no time is left"
else
  # Calls that fail are the tests' own matter; accesses are what is looked at.
  run sanitizer 120 "$sanitizer" --tool memcheck --error-exitcode 99 \
    --report-api-errors no "$device_tests" --gtest_color=no \
    --gtest_filter='*cuda_kernel*:*cuda_automatic*'
  rc=$?
  said=$(sed -n 's/^=* *ERROR SUMMARY: //p' "$out/sanitizer.log" | tail -n 1)
  case $rc in
    0) row sanitizer ok "$took" "${said:-no summary}; $(outcome "$out/sanitizer.log")" ;;
    124) row sanitizer cut "$took" "out of time; ${said:-no error until then}" ;;
    99)
      failed sanitizer "$took" "${said:-see sanitizer.log}"
      why sanitizer
      ;;
    *)
      # Some machines do not let it look at their device.
      if grep -qi 'not supported\|failed to initialize' "$out/sanitizer.log"; then
        row sanitizer skipped "$took" "it does not work on this machine, see sanitizer.log"
      else
        failed sanitizer "$took" "ended with $rc, see sanitizer.log"
        why sanitizer
      fi
      ;;
  esac
fi

# -- end -----------------------------------------------------------------------

if [[ -s $out/copy.log ]] && ((have_gpu == 0)); then
  # The default path, and what decode felt; all rows are in the log.
  grep -E '^(device|link|where)|automatic|^Decode|^beside|^(nothing|unsliced|kvtide)' \
    "$out/copy.log"
fi
row total - $((SECONDS - started)) ""
print_table
if ((worst == 0 && have_gpu == 77)); then
  exit 77
fi
exit "$worst"
