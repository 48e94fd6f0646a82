// A debugger sees through fibers: from a running one to its entry, and from a suspended one, once
// its saved registers are set. Runs gdb on this program itself; skipped, with the reason, without.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "fiber_parts.hpp"

// Where gdb stops; named for it, and not inlined.
extern "C" [[gnu::noinline, gnu::used]] void atl_test_stop(atl::runtime::Fiber* suspended) {
  asm volatile("" : : "r"(suspended) : "memory");
}

namespace atl::runtime {
namespace {

[[gnu::noinline]] void waits_in_this_frame(Routine& self) {
  self.suspend();
  asm volatile("" : : : "memory");
}

[[gnu::noinline]] void runs_in_this_frame(Fiber* suspended) {
  atl_test_stop(suspended);
  asm volatile("" : : : "memory");
}

// Does its part also without gdb, which finds it by this name.
TEST(Gdb, Victim) {
  StackPool pool({});
  Routine suspended(pool, [](Routine& self) { waits_in_this_frame(self); });
  suspended.resume();
  Routine running(pool, [&](Routine&) { runs_in_this_frame(&suspended.fiber()); });
  running.resume();
  suspended.resume();
  EXPECT_TRUE(suspended.done() && running.done());
}

[[maybe_unused]] std::string output_of(const std::string& command) {
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> part;
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) output += part.data();
  pclose(pipe);
  return output;
}

// The layouts of the plain x86-64 build.
#if defined(__x86_64__) && !defined(ATL_RT_ASAN) && !defined(ATL_RT_TSAN) && \
    !defined(ATOLL_CONTEXT_BOOST)
TEST(Gdb, SeesThroughFibers) {
  if (std::system("gdb --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "gdb is not installed";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string output = output_of(
      "gdb -nx -batch -ex 'set confirm off' -ex 'set style enabled off' -ex 'break atl_test_stop' "
      "-ex run -ex 'echo RUNNING\\n' -ex bt -ex 'set $f = *suspended' "
      "-ex 'set $rbp = $f.context.frame' -ex 'set $rsp = $f.context.sp' "
      "-ex 'set $pc = $f.context.pc' -ex 'echo SUSPENDED\\n' -ex bt -ex kill "
      "--args '" +
      self + "' --gtest_filter=Gdb.Victim 2>&1");
  if (output.find("ptrace: Operation not permitted") != std::string::npos) {
    GTEST_SKIP() << "gdb may not trace here";
  }
  const auto middle = output.find("SUSPENDED");
  ASSERT_NE(middle, std::string::npos) << output;
  const std::string running = output.substr(output.find("RUNNING"), middle);
  const std::string suspended = output.substr(middle);
  EXPECT_NE(running.find("runs_in_this_frame"), std::string::npos) << output;
  EXPECT_NE(suspended.find("waits_in_this_frame"), std::string::npos) << output;
  for (const std::string& trace : {running, suspended}) {
    EXPECT_NE(trace.find("atl_rt_context_start"), std::string::npos) << output;
    EXPECT_EQ(trace.find("corrupt stack"), std::string::npos) << output;
    EXPECT_EQ(trace.find("Cannot access memory"), std::string::npos) << output;
  }
}
#endif

}  // namespace
}  // namespace atl::runtime
