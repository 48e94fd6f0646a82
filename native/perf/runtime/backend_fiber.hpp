// Boost.Fiber: one thread with its round robin, or several with its work stealing. A new fiber is
// dispatched, which is a tenth faster than posting it. Children are posted, so that other threads
// can take them. Stacks have the default size; they come from Boost's pool with one thread (the
// pool is not thread-safe), else from the default allocator.
#pragma once

#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/all.hpp>
#include <boost/version.hpp>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "backend.hpp"

namespace atl::perf {

class Backend {
 public:
  static constexpr const char* kName = "Boost.Fiber " BOOST_LIB_VERSION;
  static constexpr Weight kWeight = Weight::kFiber;

  explicit Backend(Setup setup) {
    static int made = 0;
    if (setup.threads == 1) {
      pool() = std::make_unique<boost::fibers::pooled_fixedsize_stack>();
      return;
    }
    if (made++ != 0) throw std::runtime_error("Boost.Fiber allows one set of threads per process");
    const auto threads = static_cast<unsigned>(setup.threads);
    for (unsigned rank = 1; rank < threads; ++rank) {
      others_.emplace_back([this, threads] {
        boost::fibers::use_scheduling_algorithm<boost::fibers::algo::work_stealing>(threads);
        std::unique_lock lock(mutex_);
        over_.wait(lock, [this] { return ended_; });
      });
    }
    boost::fibers::use_scheduling_algorithm<boost::fibers::algo::work_stealing>(threads);
  }
  ~Backend() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    over_.notify_all();
    for (std::thread& other : others_) other.join();
    pool().reset();
  }
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  template <class F>
  void run(F&& f) {
    f();
  }

  template <class... F>
  static void all(F&&... f) {
    fork_all_but_last(std::forward<F>(f)...);
  }

  class Children {
   public:
    template <class F>
    void fork(F&& f) {
      fibers_.push_back(made(boost::fibers::launch::post, std::forward<F>(f)));
    }
    void join() {
      for (boost::fibers::fiber& fiber : fibers_) fiber.join();
    }

   private:
    std::vector<boost::fibers::fiber> fibers_;
  };

  template <class F>
  static boost::fibers::fiber spawn(F&& f) {
    return made(boost::fibers::launch::dispatch, std::forward<F>(f));
  }

  static void yield() { boost::this_fiber::yield(); }

  class Event {
   public:
    void wait() {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return set_; });
    }
    void set() {
      {
        const std::lock_guard lock(mutex_);
        set_ = true;
      }
      changed_.notify_all();
    }

   private:
    boost::fibers::mutex mutex_;
    boost::fibers::condition_variable changed_;
    bool set_ = false;
  };

 private:
  static std::unique_ptr<boost::fibers::pooled_fixedsize_stack>& pool() {
    static std::unique_ptr<boost::fibers::pooled_fixedsize_stack> pool;
    return pool;
  }

  template <class F>
  static boost::fibers::fiber made(boost::fibers::launch how, F&& f) {
    if (pool() == nullptr) return boost::fibers::fiber(how, std::forward<F>(f));
    return boost::fibers::fiber(how, std::allocator_arg, *pool(), std::forward<F>(f));
  }

  template <class Last>
  static void fork_all_but_last(Last&& last) {
    last();
  }
  template <class First, class... Rest>
  static void fork_all_but_last(First&& first, Rest&&... rest) {
    boost::fibers::fiber fiber = spawn(std::forward<First>(first));
    fork_all_but_last(std::forward<Rest>(rest)...);
    fiber.join();
  }

  std::vector<std::thread> others_;
  boost::fibers::mutex mutex_;
  boost::fibers::condition_variable over_;
  bool ended_ = false;
};

}  // namespace atl::perf
