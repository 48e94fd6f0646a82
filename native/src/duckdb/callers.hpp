// The threads that call DuckDB. DuckDB has a caller run tasks of its query, so a caller counts as
// the worker of rank 0 and is bound like one for the time of its call; then it gets its old mask
// back.
//
// Alone, a caller sits on rank 0's chiplet. Several at a time share all chiplets that workers sit
// on: the kernel may choose there, since more threads than cores are ready then.
#pragma once

#include <mutex>
#include <vector>

namespace atl::duckdb {

class Callers {
 public:
  // Where callers are to sit from now on, and those that are here too; both empty: they keep their
  // own masks.
  void seat(std::vector<int> alone, std::vector<int> several);

  // By the calling thread, at the begin and end of a call into DuckDB. Calls within calls (a
  // function in Python that queries) are counted, not bound anew.
  void enter();
  void leave() noexcept;

  struct Caller {
    int tid = 0;
    std::vector<int> cpus;  // bound to; empty: not bound
  };
  // Those that are inside a call now.
  std::vector<Caller> now() const;

 private:
  struct Inside {
    int tid = 0;
    int depth = 0;
    std::vector<int> before;  // its own mask; empty: it was not bound
    std::vector<int> bound;   // what we gave it instead
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
