// The queues of what every worker may run and no worker's deque holds: tasks from threads that are
// no workers, and tasks that they or timers resume. There is one for each chiplet, so that threads
// on different chiplets meet in no cache line. A worker takes from its own chiplet's first.
#pragma once

#include <cstddef>
#include <vector>

#include "word_queue.hpp"

namespace atl::runtime {

class ChipletQueues {
 public:
  explicit ChipletQueues(int chiplets) : queues_(static_cast<std::size_t>(chiplets)) {}

  void push(Word word, int chiplet) noexcept {
    queues_[static_cast<std::size_t>(chiplet)].push(word);
  }

  // The oldest word of the first queue that has one, beginning with this chiplet's; 0 if there is
  // none, or if other threads are inside. A queue that never runs empty keeps out those after it,
  // so a worker has to begin elsewhere now and then.
  Word pop(std::size_t chiplet) noexcept {
    for (std::size_t tried = 0; tried < queues_.size(); ++tried) {
      if (const Word word = queues_[(chiplet + tried) % queues_.size()].pop()) return word;
    }
    return 0;
  }

  // As WordQueue's: a word that is in a queue throughout the call makes it false.
  bool looks_empty() const noexcept {
    for (const WordQueue& queue : queues_) {
      if (!queue.looks_empty()) return false;
    }
    return true;
  }

 private:
  std::vector<WordQueue> queues_;
};

}  // namespace atl::runtime
