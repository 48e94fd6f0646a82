#include <boost/context/detail/fcontext.hpp>

#include "context.hpp"

namespace atl::runtime {

namespace {

namespace fcontext = boost::context::detail;

// Boost tells the one that arrives where the other has stopped; ours stores it for the other.
struct BoostHop {
  Context* from;
  Context* to;
  void* passed;
};

void* arrive(fcontext::transfer_t transfer) noexcept {
  const BoostHop hop = *static_cast<BoostHop*>(transfer.data);
  hop.from->sp = transfer.fctx;
  return hop.passed;
}

void start(fcontext::transfer_t transfer) {
  void (*const entry)(void*) = static_cast<BoostHop*>(transfer.data)->to->entry;
  entry(arrive(transfer));
}

}  // namespace

void prepare_context(Context& context, void* top, FiberEntry entry) noexcept {
  // Only ports that check the size use it, and they compare it with nothing.
  constexpr std::size_t kUnknownBytes = 4096;
  context.sp = fcontext::make_fcontext(top, kUnknownBytes, &start);
  context.entry = entry;
}

void* switch_context(Context& from, Context& to, void* passed) noexcept {
  BoostHop hop{&from, &to, passed};
  return arrive(fcontext::jump_fcontext(to.sp, &hop));
}

}  // namespace atl::runtime
