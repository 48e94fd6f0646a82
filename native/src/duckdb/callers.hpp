// The threads that call DuckDB. DuckDB lets a caller run tasks of its query, so a caller counts as
// the worker of rank 0: it is bound like a worker during its call and then gets its old mask
// back.
//
// A caller that is alone sits on rank 0's chiplet. Several callers share all chiplets of the
// workers: the kernel may choose among them, since more threads than cores are ready then.
#pragma once

#include <mutex>
#include <vector>

namespace atl::duckdb {

class Callers {
 public:
  // Sets the CPUs for callers from now on, and moves those that are in a call. If both are empty,
  // callers keep their own masks.
  void seat(std::vector<int> alone, std::vector<int> several);

  // Called by the calling thread at the start and end of a call into DuckDB. A nested call (a
  // Python function that queries) is counted and not bound again.
  void enter();
  void leave() noexcept;

  struct Caller {
    int tid = 0;
    std::vector<int> cpus;  // the CPUs it is bound to; empty: not bound
  };
  // The callers that are inside a call now.
  std::vector<Caller> now() const;

 private:
  struct Inside {
    int tid = 0;
    int depth = 0;
    std::vector<int> before;  // its own mask; empty: it was not bound
    std::vector<int> bound;   // the mask that replaces it
  };
  const std::vector<int>& cpus() const { return inside_.size() > 1 ? several_ : alone_; }
  void bind(Inside& caller) const;
  static void follow(Inside& caller);
  void bind_others(int tid);

  mutable std::mutex mutex_;
  std::vector<Inside> inside_;
  std::vector<int> alone_;
  std::vector<int> several_;
};

}  // namespace atl::duckdb
