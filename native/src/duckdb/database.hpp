// A database that the pool uses, as the extension passed it on. A connection of our own keeps it
// open: DuckDB crashes if workers are stopped after the last connection has closed, so the pool
// stops first and releases the database last.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "capi.hpp"
#include "handover.hpp"

namespace atl::duckdb {

class DatabaseHandle {
 public:
  // The number of this handle in the process, which `SELECT atoll_pool()` in the database returns.
  explicit DatabaseHandle(std::int64_t number) : number_(number) {}
  // Releases the database. The last release closes it, which may write a checkpoint.
  ~DatabaseHandle();
  DatabaseHandle(const DatabaseHandle&) = delete;
  DatabaseHandle& operator=(const DatabaseHandle&) = delete;

  std::int64_t number() const { return number_; }
  // Makes this handle receive the database of the calling thread's next LOAD of `extension` (a
  // path). Afterwards `arrived` tells whether one came, which fails if the extension was already
  // loaded. Throws RuntimeFault if the file cannot be loaded.
  void expect(const std::string& extension);
  void expect_no_more();
  bool arrived() const { return state_ != nullptr; }

  // Called by workers. Returns after `finish` was called.
  void execute_tasks() const;
  // Returns when all workers have returned.
  void finish();

  // Bytes of DuckDB's memory used for other things than cached tables: hash tables, sorts,
  // intermediate and fetched results. Takes about 0.1 ms. nullopt if the query failed.
  std::optional<std::uint64_t> working_set_bytes();

 private:
  static bool receive(void* self, void* info, const ExtensionAccess* access);
  bool take(void* info, const ExtensionAccess& access);
  bool register_number();

  const std::int64_t number_;
  Expect expect_ = nullptr;
  Capi api_{};
  Connection connection_ = nullptr;
  TaskState state_ = nullptr;
  mutable std::atomic<int> working_{0};  // inside execute_tasks
  std::mutex asking_;
  Prepared memory_ = nullptr;
};

}  // namespace atl::duckdb
