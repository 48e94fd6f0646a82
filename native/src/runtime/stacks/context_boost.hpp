// The switch by Boost.Context's fcontext layer, for processors that have none of ours. The layer
// above it (boost::context::fiber) unwinds a suspended stack by force when it is destroyed, which
// a task's frames must not see.
#pragma once

namespace atl::runtime {

struct Context {
  void* sp = nullptr;  // an fcontext_t: it lies on the suspended stack, at its lowest live byte
  void (*entry)(void* passed) = nullptr;
};

void* switch_context(Context& from, Context& to, void* passed) noexcept;

}  // namespace atl::runtime
