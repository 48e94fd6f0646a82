// The schedulers that run a kernel's loops. A kernel is written once, over this interface; each
// scheduler is a class behind it, so that a comparison changes the scheduler and nothing else.
//
//   atoll          Atoll's task runtime, under a named approach or a fixed spread
//   arcas-printed  the same with both algorithms of ARCAS as the paper prints them
//   os             one thread of the standard library per worker, which the system places
//   async          std::async, a task for each piece (DimmWitted with std::async, ARCAS 5.4.2)
//   openmp, tbb    GCC's OpenMP and oneTBB, where this build found them
//
// The methods are those of the runtime: `loop` is its parallel_for, `each` its all_do. Calls go
// through a pointer once per piece or worker, never per item. The first exception of a body is
// thrown by the call, when all have left it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "atoll/runtime/placed_memory.hpp"
#include "atoll/runtime/profile.hpp"

namespace atl::kernels {

// A reference to a callable, for arguments that are called before the callee returns.
template <class Signature>
class FunctionRef;
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& function)  // implicit, as with std::function
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}
  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

// Cache lines that the workers' cores got so far, by source.
struct Lines {
  std::string counted_by;  // Profile::fills_source; empty: nobody counts them here
  std::array<std::optional<std::uint64_t>, kFillSources> from{};
  int chiplets = 0;  // that the workers are spread over
};

class Team {
 public:
  virtual ~Team() = default;

  [[nodiscard]] virtual int workers() const = 0;
  // Where the workers' memory is near them.
  [[nodiscard]] virtual NodeMap nodes() const = 0;
  // The chiplet of each rank's worker. Where nobody places the workers: an even share of the ranks
  // for each.
  [[nodiscard]] virtual std::vector<int> chiplets() const = 0;

  // How many threads it has started that have ended: of `async`, one for each piece.
  [[nodiscard]] virtual int ended_threads() const { return 0; }

  // Calls `work` once, and returns after it. The other methods are for inside of it.
  virtual void run(FunctionRef<void()> work) = 0;

  // Calls piece(first, last) for pieces that cover [0, items), each of `grain` items or more (of
  // half as many with oneTBB) but for the last; 0: the scheduler's default. Any worker may run any
  // piece.
  virtual void loop(std::size_t items, std::size_t grain,
                    FunctionRef<void(std::size_t first, std::size_t last)> piece) = 0;

  // Calls work(rank) once for each rank from 0 to workers() - 1, each on the worker of that rank
  // where the scheduler can do so. With oneTBB one may begin after another's end, so they must not
  // wait for each other.
  virtual void each(FunctionRef<void(int rank)> work) = 0;

  // The calling worker's number, from 0 to workers() - 1, until it waits. No two pieces or works
  // that run at the same time have the same.
  [[nodiscard]] virtual int rank() const = 0;

  // Costs some 50 us a worker.
  [[nodiscard]] virtual Lines lines() const { return {}; }
};

struct TeamOptions {
  std::string scheduler = "atoll";
  int workers = 1;
  std::string approach;                     // of `atoll`; empty: the runtime's default
  std::chrono::milliseconds interval{100};  // between two of its decisions
};

// The names that `make_team` knows in this build.
[[nodiscard]] std::string team_names();

// Throws UsageFault for a scheduler that this build does not have, RuntimeFault or
// std::system_error if threads cannot be had.
[[nodiscard]] std::unique_ptr<Team> make_team(const TeamOptions& options);

}  // namespace atl::kernels
