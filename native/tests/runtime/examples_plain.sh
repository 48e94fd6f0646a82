#!/bin/sh
# Builds and runs examples in C++ and in C without CMake, with what pkg-config prints for the static
# and the shared library, and as libraries that a program loads.
# Arguments: the compilers of C and C++, the folder of the examples, load_plugins.c.
# shellcheck disable=SC2086  # words of pkg-config
set -eu
cc=$1 cxx=$2 examples=$3
strict="-std=c11 -Wall -Wextra -Wpedantic -Werror"
static=$(pkg-config --cflags --libs atoll)
shared=$(pkg-config --cflags --libs atoll-shared)

"$cxx" -std=c++20 "$examples/fork_join.cpp" $static -o plain_fork_join
"$cc" $strict "$examples/c_tasks.c" $static -o plain_c_tasks
"$cc" $strict "$examples/c_tasks.c" $shared -o plain_shared_c_tasks
./plain_fork_join
./plain_c_tasks
./plain_shared_c_tasks
if ldd plain_c_tasks | grep atoll-runtime; then exit 1; fi
ldd plain_shared_c_tasks | grep -q 'libatoll-runtime\.so\.[0-9]'

# In one process: two libraries that share a runtime library, and one with a copy of its own.
plugin="$strict -fPIC -shared -Dmain=plugin_main $examples/c_tasks.c"
"$cc" $plugin $shared -o plugin_1.so
"$cc" $plugin $shared -o plugin_2.so
"$cc" $plugin $static -Wl,--exclude-libs,libatoll-runtime.a -o plugin_own.so
"$cc" "$4" -ldl -o load_plugins
./load_plugins ./plugin_1.so ./plugin_2.so ./plugin_own.so
