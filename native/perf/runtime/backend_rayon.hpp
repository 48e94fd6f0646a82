// rayon, whose kernels are Rust (native/perf/rayon). The caller of `run` is not a worker.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend.hpp"

extern "C" {
struct PerfRayonPool;
PerfRayonPool* perf_rayon_start(std::size_t threads);
void perf_rayon_stop(PerfRayonPool* pool);
std::int64_t perf_rayon_fib(PerfRayonPool* pool, std::int32_t n);
std::int64_t perf_rayon_skynet(PerfRayonPool* pool, std::int64_t first, std::int64_t leaves);
}

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName = "rayon 1.12.0";
  static constexpr Weight kWeight = Weight::kTask;

  explicit Backend(Setup setup)
      : pool_(perf_rayon_start(static_cast<std::size_t>(setup.threads))) {}
  ~Backend() { perf_rayon_stop(pool_); }
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  long fib(int n) { return perf_rayon_fib(pool_, n); }
  long skynet(long first, long leaves) { return perf_rayon_skynet(pool_, first, leaves); }

 private:
  PerfRayonPool* pool_;
};

}  // namespace atl::perf
