// The task runtime as a team (plain_team.hpp has what that is): one worker per thread, loops by
// parallel_for, a value per worker by WorkerLocal.
#pragma once

#include <cstddef>
#include <utility>

#include "atoll/runtime/parallel.hpp"
#include "atoll/runtime/runtime.hpp"
#include "atoll/runtime/worker_local.hpp"
#include "locality.hpp"

namespace atl::workloads {

class AtollTeam : public WatchedTeam {
 public:
  // Throws RuntimeFault.
  explicit AtollTeam(int threads) : runtime_(with_workers(threads)) {}

  [[nodiscard]] int threads() const { return runtime_.workers(); }

  template <class F>
  void run(F&& function) {
    runtime_.run([&] { function(); });
  }

  // In pieces, which others may take over from a worker that falls behind.
  template <class Body>
  void shares(std::size_t items, Body&& body) {
    pieces(items, 0, body);
  }

  template <class Body>
  void pieces(std::size_t items, std::size_t grain, Body&& body) {
    atl::parallel_for(
        std::size_t{0}, items,
        [&](std::size_t first, std::size_t last) {
          body(first, last);
          worked(last - first);
        },
        grain);
    loop_ended();
  }

  template <class T>
  class Local {
   public:
    template <class Make>
    Local(AtollTeam&, Make make) : values_(std::move(make)) {}
    auto lease() { return values_.lease(); }
    template <class F>
    void for_each(F&& function) {
      values_.for_each(function);
    }

   private:
    atl::WorkerLocal<T> values_;
  };

 private:
  static RuntimeOptions with_workers(int threads) {
    RuntimeOptions options;
    options.workers = threads;
    return options;
  }

  Runtime runtime_;
};

}  // namespace atl::workloads
