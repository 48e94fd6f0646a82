// A database as the pool holds it: what the extension hands over, kept alive by a connection of our
// own. DuckDB ends the process when workers are told to finish after the last connection is gone,
// so the pool stops first and gives this back last.
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
  // Number of this handle in the process; SQL `atoll_pool()` in this database gives it.
  explicit DatabaseHandle(std::int64_t number) : number_(number) {}
  // Gives the database back; the last to do so closes it, which may write a checkpoint.
  ~DatabaseHandle();
  DatabaseHandle(const DatabaseHandle&) = delete;
  DatabaseHandle& operator=(const DatabaseHandle&) = delete;

  std::int64_t number() const { return number_; }
  // Makes this the one that the calling thread's next LOAD of `extension` (a path) goes to; then
  // `arrived` says whether one came: it does not where the extension was loaded before. Throws
  // RuntimeFault where the file cannot be loaded.
  void expect(const std::string& extension);
  void expect_no_more();
  bool arrived() const { return state_ != nullptr; }

  // Workers: returns when `finish` was called.
  void execute_tasks() const;
  // Returns when all workers have.
  void finish();

  // Bytes of DuckDB's memory that are in use for other things than cached tables: hash tables,
  // sorts, intermediate and fetched results. Some 0.1 ms. None: it could not be asked.
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
