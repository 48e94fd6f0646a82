// A group of tasks: a part of a runtime's workers with a spread of its own.
//
//   atl::Group query(runtime, {.threads = 8});
//   query.run([&] { join(left, right); });
//
// At most `threads` workers run its tasks. Which ones follows from its spread: over how many
// chiplets they lie (mapping.hpp). Its approach decides the spread anew once an interval
// (controller.hpp). What its tasks fork and spawn is of the group, too, unless they name a place.
//
// Promises
//  - A task of the group runs on one of its workers. When the spread changes, fresh tasks go to the
//    new ones at once; what runs goes on where it is until it suspends or yields.
//  - The destructor waits for the group's tasks.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "atoll/runtime/runtime.hpp"

namespace atl {

struct GroupOptions {
  int threads = 0;  // at most; 0: as many as the runtime has workers
  std::string approach = std::string(kDefaultApproach);
  std::shared_ptr<Approach> own_approach = {};          // the user's, instead of a named one
  std::optional<std::uint64_t> working_set_bytes = {};  // for 'cache-size-centric'
};

class ATOLL_EXPORT Group {
 public:
  // RuntimeFault: more threads than workers, no such approach. The runtime must outlive it.
  explicit Group(Runtime& runtime, const GroupOptions& options = {});
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  template <std::invocable F>
  [[nodiscard]] auto spawn(F&& function) {
    return runtime_.spawn(place(), std::forward<F>(function));
  }
  template <std::invocable F>
  decltype(auto) run(F&& function) {
    return spawn(std::forward<F>(function)).join();
  }

  // To give to spawn and call.
  Place place() const;
  // The ranks of the workers that may run its tasks now.
  std::vector<int> workers() const;
  int spread() const;
  // From now on it is this, and the approach is no longer asked. RuntimeFault: out of bounds.
  void set_spread(int spread);
  // Why the spread is what it is, for people.
  std::string reason() const;

 private:
  struct State;
  Runtime& runtime_;
  std::unique_ptr<State> state_;
};

}  // namespace atl
