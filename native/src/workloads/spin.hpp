// Waiting for another thread that is about to be done.
#pragma once

#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace atl::workloads {

class Spin {
 public:
  // The other thread may have lost its CPU: after some looks, lets others run.
  void wait() {
    if (tries_ >= 64) return std::this_thread::yield();
    ++tries_;
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

 private:
  int tries_ = 0;
};

}  // namespace atl::workloads
