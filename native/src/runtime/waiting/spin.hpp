// When spinning is worth it, and how. Each use is bounded.
#pragma once

namespace atl::runtime {

// Tells the CPU that the thread spins; 40 to 140 cycles on x86, some tens on aarch64.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// How many tasks may be running now besides the caller's: those of the other workers, or 0 if
// workers share CPUs and the caller may keep the others from running. For a thread that is not a
// worker: the number of CPUs of the machine.
int others_running();

}  // namespace atl::runtime
