// The places behind the C interface's handle.
#pragma once

#include "atoll/runtime/places.hpp"

struct atoll_rt_places {
  atl::Places places;
};
