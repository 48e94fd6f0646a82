// A value per worker, for results that are collected apart and combined at the end.
//
//   atl::WorkerLocal<Histogram> counts;
//   atl::parallel_for(0, rows, [&](int first, int last) {
//     auto mine = counts.lease();
//     for (int row = first; row < last; ++row) ++mine->at(key[row]);
//   });
//   const Histogram all = counts.combine(add);
//
// Promises
//  - A lease is a value that nobody else has until it ends, also across waits, which may move the
//    task to another worker. A value goes back to the worker on which its lease ends, and the next
//    lease on that worker gets it, the newest first. So there is a value per worker, and one more
//    for each task that waits with a lease.
//  - A lease costs a few loads and stores, no atomic operation, unless it makes a new value. Values
//    are made on the worker that needs them, so that their pages are near it.
//  - `for_each` and `combine` see every value. Call them when the leases have ended and their tasks
//    are joined; a lease that is left is a RuntimeFault. Which value has seen which items is up to
//    scheduling.
//  - The object belongs to the runtime of the task that made it. Throws RuntimeFault elsewhere; a
//    lease that ends elsewhere ends the program.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "atoll/runtime/detail/worker.hpp"

namespace atl {

namespace detail {
// The runtime of the calling worker, and its number of workers. Throw RuntimeFault outside of a
// task.
ATOLL_EXPORT const void* runtime_of_worker();
ATOLL_EXPORT std::size_t worker_slots();
// The slot of the calling worker. Throws RuntimeFault if it is not of that runtime.
ATOLL_EXPORT std::size_t worker_slot(const void* runtime);
[[noreturn]] ATOLL_EXPORT void fault_leased();
}  // namespace detail

template <class T>
class WorkerLocal {
  struct Node {
    template <class Make>
    explicit Node(Make& make) : value(make()) {}
    T value;
    Node* below = nullptr;  // in its worker's stack of free values
    Node* older = nullptr;  // in the list of all values
    bool leased = true;
  };

 public:
  class [[nodiscard]] Lease {
   public:
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { owner_.give_back(node_); }
    T& operator*() const { return node_->value; }
    T* operator->() const { return &node_->value; }

   private:
    friend WorkerLocal;
    explicit Lease(WorkerLocal& owner) : owner_(owner), node_(owner.take()) {}
    WorkerLocal& owner_;
    Node* const node_;
  };

  WorkerLocal()
    requires std::default_initializable<T>
      : WorkerLocal([] { return T(); }) {}
  // Values begin as what `make` returns. Several workers may call it at once.
  template <class Make>
    requires std::convertible_to<std::invoke_result_t<Make&>, T>
  explicit WorkerLocal(Make make)
      : make_node_([make = std::move(make)]() mutable { return new Node(make); }),
        slots_(detail::worker_slots()) {}
  ~WorkerLocal() {
    for (Node* node = newest_.load(std::memory_order_acquire); node != nullptr;) {
      delete std::exchange(node, node->older);
    }
  }
  WorkerLocal(const WorkerLocal&) = delete;
  WorkerLocal& operator=(const WorkerLocal&) = delete;

  // Throws what the function that makes values throws.
  Lease lease() { return Lease(*this); }

  template <std::invocable<T&> F>
  void for_each(F&& function) {
    // Acquire: the values were made by other workers, and their leases are over.
    for (Node* node = newest_.load(std::memory_order_acquire); node != nullptr;
         node = node->older) {
      if (node->leased) detail::fault_leased();
      function(node->value);
    }
  }

  // combine(combine(a, b), c) ... of copies of all values, in no particular order. Without values,
  // a new one.
  template <class Combine>
  [[nodiscard]] T combine(Combine&& combine) {
    std::optional<T> all;
    for_each([&](const T& value) {
      if (all) {
        all.emplace(combine(T(std::move(*all)), value));
      } else {
        all.emplace(value);
      }
    });
    return all ? std::move(*all) : T(*lease());
  }

 private:
  // Only its worker uses it, between two suspensions.
  struct alignas(128) Slot {
    Node* top = nullptr;
  };

  Node* take() {
    Slot& slot = slots_[detail::worker_slot(runtime_)];
    if (Node* const node = slot.top) {
      slot.top = node->below;
      node->leased = true;
      return node;
    }
    Node* const node = make_node_();
    node->older = newest_.load(std::memory_order_relaxed);
    while (!newest_.compare_exchange_weak(node->older, node, std::memory_order_release,
                                          std::memory_order_relaxed)) {
    }
    return node;
  }

  void give_back(Node* node) {
    Slot& slot = slots_[detail::worker_slot(runtime_)];
    node->leased = false;
    node->below = std::exchange(slot.top, node);
  }

  std::function<Node*()> make_node_;
  const void* const runtime_ = detail::runtime_of_worker();
  std::vector<Slot> slots_;
  std::atomic<Node*> newest_{nullptr};
};

}  // namespace atl
