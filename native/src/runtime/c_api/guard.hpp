// Turns exceptions into codes and messages for the C interface.
#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "atoll/runtime/places.hpp"
#include "atoll/runtime/stoppable.hpp"

namespace atl::runtime {

// Keeps the text for atoll_rt_message; "no memory" if there is none for it.
void set_message(const char* text) noexcept;

// What `body` returns; 0 if that is nothing.
template <typename Body>
int guarded(Body body) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(body())>) {
      body();
      return 0;
    } else {
      return body();
    }
  } catch (const RuntimeFault& fault) {
    set_message(fault.what());
    return EINVAL;
  } catch (const Stopped& fault) {
    set_message(fault.what());
    return ECANCELED;
  } catch (const std::bad_alloc&) {
    set_message("out of memory");
    return ENOMEM;
  } catch (const std::exception& fault) {  // length_error: an absurd size
    set_message(fault.what());
    return EINVAL;
  } catch (...) {
    set_message("an exception that is no std::exception left a function that was called");
    return EINVAL;
  }
}

}  // namespace atl::runtime
