// Atoll's task runtime, all of it, in the order in which to read it. docs/runtime.md is the guide;
// native/examples has a program for each call. Each header can be included alone.
#pragma once

// The runtime and its options.
#include "atoll/runtime/options.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/stack_options.hpp"
// Tasks: fork, scope, spawn, coroutines, and what a task can do about itself.
#include "atoll/runtime/coro.hpp"
#include "atoll/runtime/coroutine.hpp"
#include "atoll/runtime/fork.hpp"
#include "atoll/runtime/scope.hpp"
#include "atoll/runtime/stoppable.hpp"
#include "atoll/runtime/task.hpp"
#include "atoll/runtime/task_local.hpp"
#include "atoll/runtime/this_task.hpp"
#include "atoll/runtime/when.hpp"
// Loops and algorithms.
#include "atoll/runtime/algorithms.hpp"
#include "atoll/runtime/all_do.hpp"
#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/parallel_array.hpp"
#include "atoll/runtime/worker_local.hpp"
// Waiting.
#include "atoll/runtime/barrier.hpp"
#include "atoll/runtime/blocking.hpp"
#include "atoll/runtime/channel.hpp"
#include "atoll/runtime/condition_variable.hpp"
#include "atoll/runtime/event.hpp"
#include "atoll/runtime/latch.hpp"
#include "atoll/runtime/mutex.hpp"
#include "atoll/runtime/semaphore.hpp"
#include "atoll/runtime/sleep.hpp"
// Places and groups.
#include "atoll/runtime/controller.hpp"
#include "atoll/runtime/group.hpp"
#include "atoll/runtime/mapping.hpp"
#include "atoll/runtime/place.hpp"
#include "atoll/runtime/places.hpp"
#include "atoll/runtime/victims.hpp"
// Memory by node, and the profile. For C there are atoll/runtime.h and atoll/tasks.h.
#include "atoll/runtime/memory.hpp"
#include "atoll/runtime/profile.hpp"
