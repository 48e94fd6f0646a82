// Marks the parts of the runtime that a program may link to.
#pragma once

#define ATOLL_EXPORT __attribute__((visibility("default")))
