#!/bin/sh
# Builds and runs an example in C++ and one in C without CMake, with what pkg-config prints.
# Arguments: the compilers of C and C++, the folder of the examples.
set -eu
plain=$(pkg-config --cflags --libs atoll)
# shellcheck disable=SC2086  # several words
"$2" -std=c++20 "$3/fork_join.cpp" $plain -o plain_fork_join
# shellcheck disable=SC2086
"$1" -std=c11 -Wall -Wextra -Wpedantic -Werror "$3/c_tasks.c" $plain -o plain_c_tasks
./plain_fork_join
./plain_c_tasks
