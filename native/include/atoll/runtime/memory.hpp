// Memory by node: which of its kinds to take is in docs/runtime-memory.md.
#pragma once

#include "atoll/runtime/array.hpp"
#include "atoll/runtime/memory_resources.hpp"
#include "atoll/runtime/placed_memory.hpp"
#include "atoll/runtime/replicated.hpp"
