// Plain threads, as the programs of numa-query-tuning have them: started once, the same threads in
// every loop, nothing stolen. They run where the system puts them, within atoll-exec's mask.
//
// What the workloads ask of a team (this one, or atoll_team.hpp):
//
//   team.run(f)                 calls f() where loops and locals may be used
//   team.shares(items, body)    body(first, last) for parts that cover [0, items): an even share
//                               for each thread
//   team.pieces(items, grain, body)
//                               the same in pieces of about `grain` items, to whoever is free
//   Team::Local<T> l(team, make)
//                               a value per thread, made by make() on the thread; l.lease() gives
//                               the caller's, l.for_each(f) sees all, between loops
//   team.watch(), team.local_share()
//                               locality.hpp has what they are
//
// The first exception of a body is thrown by the loop, when all threads have left it.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "locality.hpp"

namespace atl::workloads {

class PlainTeam : public WatchedTeam {
 public:
  // The caller is the first thread. Thread k is bound to the k-th of `cpus`, which begin again at
  // their end; without CPUs none is bound. Throws std::system_error if a thread cannot be started
  // or bound.
  explicit PlainTeam(int threads, std::span<const int> cpus = {});
  ~PlainTeam();
  PlainTeam(const PlainTeam&) = delete;
  PlainTeam& operator=(const PlainTeam&) = delete;

  [[nodiscard]] int threads() const { return threads_; }

  // The calling thread's number in its team.
  static std::size_t rank() { return own_rank(); }

  template <class F>
  void run(F&& function) {
    function();
  }

  // Calls work(rank) on all threads and waits for them.
  void each(const std::function<void(std::size_t rank)>& work);

  template <class Body>
  void shares(std::size_t items, Body&& body) {
    const auto threads = static_cast<std::size_t>(threads_);
    each([&](std::size_t rank) {
      const std::size_t first = items * rank / threads;
      const std::size_t last = items * (rank + 1) / threads;
      if (first >= last) return;
      body(first, last);
      worked(last - first);
    });
  }

  template <class Body>
  void pieces(std::size_t items, std::size_t grain, Body&& body) {
    std::atomic<std::size_t> next{0};
    each([&](std::size_t) {
      for (;;) {
        // Relaxed: what a piece reads was there before the loop began.
        const std::size_t first = next.fetch_add(grain, std::memory_order_relaxed);
        if (first >= items) return;
        const std::size_t last = std::min(first + grain, items);
        body(first, last);
        worked(last - first);
      }
    });
  }

  template <class T>
  class Local {
   public:
    template <class Make>
    Local(PlainTeam& team, Make make)
        : make_([make = std::move(make)] { return std::unique_ptr<T>(new T(make())); }),
          slots_(static_cast<std::size_t>(team.threads())) {}
    T* lease() {
      std::unique_ptr<T>& value = slots_[rank()].value;
      if (!value) value = make_();
      return value.get();
    }
    template <class F>
    void for_each(F&& function) {
      for (Slot& slot : slots_) {
        if (slot.value) function(*slot.value);
      }
    }

   private:
    struct alignas(128) Slot {
      std::unique_ptr<T> value;
    };
    std::function<std::unique_ptr<T>()> make_;
    std::vector<Slot> slots_;
  };

 private:
  static std::size_t& own_rank();
  void serve(std::size_t own);
  void work_as(std::size_t own);
  void stop();

  int threads_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable begin_;
  std::condition_variable end_;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool stopped_ = false;
  std::exception_ptr fault_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::vector<std::thread> others_;
};

}  // namespace atl::workloads
