// What of the runtime a program may link to.
#pragma once

#define ATOLL_EXPORT __attribute__((visibility("default")))
