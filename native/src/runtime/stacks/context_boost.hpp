// The switch through Boost.Context's fcontext layer, for processors without a switch of ours. The
// layer above it (boost::context::fiber) unwinds a suspended stack when it is destroyed, which must
// not happen to a task's frames.
#pragma once

namespace atl::runtime {

struct Context {
  void* sp = nullptr;  // an fcontext_t: it lies on the suspended stack, at its lowest live byte
  void (*entry)(void* passed) = nullptr;
};

inline void save_control(Context&) noexcept {}  // jump_fcontext does
void* switch_context(Context& from, Context& to, void* passed) noexcept;

}  // namespace atl::runtime
