// Memory by node; docs/runtime-memory.md explains which kind to use.
#pragma once

#include "atoll/runtime/array.hpp"
#include "atoll/runtime/memory_resources.hpp"
#include "atoll/runtime/placed_memory.hpp"
#include "atoll/runtime/replicated.hpp"
