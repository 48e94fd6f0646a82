#!/bin/sh
# A program and the library must be built with the same sanitizer: links a program both ways.
# Arguments: the compiler of C++, the includes, the static library, the topology library, the flags of
# this build, the name of the library's sanitizer, flags of another.
# shellcheck disable=SC2086  # several flags
set -eu
cat >same.cpp <<'END'
#include <atoll/runtime/task.hpp>
#include <atoll/tasks.h>
int main() { return atoll_rt_runtime_create(nullptr, nullptr) != 0 ? 0 : 1; }
END
link() { "$@" -std=c++20 -I "$includes" same.cpp "$library" "$topology" -pthread -o same; }
cxx=$1 includes=$2 library=$3 topology=$4
link "$cxx" $5
LD_LIBRARY_PATH=$(dirname "$topology") ./same
# A linker that drops unused sections must see the mixture, too.
for sections in "" "-ffunction-sections -fdata-sections -Wl,--gc-sections"; do
  if link "$cxx" $sections $7 2>said; then
    echo "a mixture of sanitizers was linked" >&2
    exit 1
  fi
  cat said
  # A library with a sanitizer lacks the sanitizer's own functions first.
  grep -q -e "undefined reference to .atoll_runtime_built_with" -e __asan -e __tsan said
done
nm "$library" 2>/dev/null | grep -q " R atoll_runtime_built_$6"
