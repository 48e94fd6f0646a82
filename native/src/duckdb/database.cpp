#include "database.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

#include "atoll/runtime/places.hpp"

namespace atl::duckdb {

namespace {

// Leaves out cached tables and indexes, and memory unrelated to a query's own data. Does not use
// IN, which would build a hash table of 2 MiB. The names are qualified, because the user's database
// could define a macro with the same name.
constexpr const char* kWorkingSet =
    "SELECT coalesce(system.main.sum(memory_usage_bytes), 0)::BIGINT "
    "FROM system.main.duckdb_memory() WHERE "
    "tag <> 'BASE_TABLE' AND tag <> 'METADATA' AND tag <> 'IN_MEMORY_TABLE' AND "
    "tag <> 'ART_INDEX' AND tag <> 'EXTENSION' AND tag <> 'OBJECT_CACHE' AND "
    "tag <> 'EXTERNAL_FILE_CACHE' AND tag <> 'TRANSACTION'";

}  // namespace

DatabaseHandle::~DatabaseHandle() {
  if (memory_ != nullptr) api_.destroy_prepare(&memory_);
  if (state_ != nullptr) api_.destroy_task_state(state_);
  if (connection_ != nullptr) api_.disconnect(&connection_);
}

void DatabaseHandle::execute_tasks() const {
  ++working_;
  api_.execute_tasks_state(state_);
  --working_;
}

void DatabaseHandle::finish() {
  api_.finish_execution(state_);
  // It wakes as many threads as there are workers, but not necessarily workers: after
  // `SET threads = 8` some are DuckDB's own, and workers would sleep on.
  while (working_ > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    api_.finish_execution(state_);
  }
}

void DatabaseHandle::expect(const std::string& extension) {
  // DuckDB loads the same file and thus this same library. DuckDB never unloads it.
  void* library = dlopen(extension.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw RuntimeFault(std::string("the extension: ") + dlerror());
  expect_ = reinterpret_cast<Expect>(dlsym(library, kExpect));
  if (expect_ == nullptr) throw RuntimeFault(extension + " is not Atoll's extension");
  expect_(&DatabaseHandle::receive, this);
}

void DatabaseHandle::expect_no_more() {
  if (expect_ != nullptr) expect_(nullptr, nullptr);
}

bool DatabaseHandle::receive(void* self, void* info, const ExtensionAccess* access) {
  try {
    return static_cast<DatabaseHandle*>(self)->take(info, *access);
  } catch (const std::bad_alloc&) {
    access->set_error(info, "out of memory");
    return false;
  }
}

bool DatabaseHandle::take(void* info, const ExtensionAccess& access) {
  if (access.get_api(info, "v1.2.0") == nullptr) return false;  // DuckDB has set the error
  Capi api{};
  if (const std::string missing =
          find_capi(reinterpret_cast<const void*>(access.get_database), api);
      !missing.empty()) {
    access.set_error(info, missing.c_str());
    return false;
  }
  void** const database = access.get_database(info);
  if (database == nullptr) return false;
  api_ = api;
  if (api_.connect(*database, &connection_) != State::success) {
    access.set_error(info, "Atoll cannot connect to the database");
    return false;
  }
  if (!register_number()) {
    access.set_error(info, "Atoll cannot register the function atoll_pool()");
    return false;
  }
  state_ = api_.create_task_state(*database);
  return true;
}

bool DatabaseHandle::register_number() {
  ScalarFunction function = api_.create_scalar_function();
  LogicalType bigint = api_.create_logical_type(kTypeBigint);
  api_.scalar_function_set_name(function, "atoll_pool");
  api_.scalar_function_set_return_type(function, bigint);
  // The function may outlive this object, so it gets a copy of the number.
  struct Extra {
    std::int64_t number;
    decltype(Capi::data_chunk_get_size) size;
    decltype(Capi::vector_get_data) data;
  };
  // The callback must query its arguments with DuckDB's own functions.
  static decltype(Capi::scalar_function_get_extra_info) get_extra;
  get_extra = api_.scalar_function_get_extra_info;
  auto* const extra = new Extra{number_, api_.data_chunk_get_size, api_.vector_get_data};
  api_.scalar_function_set_extra_info(function, extra,
                                      [](void* made) { delete static_cast<Extra*>(made); });
  api_.scalar_function_set_function(
      function, [](FunctionInfo info, DataChunk input, Vector output) {
        const auto* known = static_cast<const Extra*>(get_extra(info));
        auto* const values = static_cast<std::int64_t*>(known->data(output));
        std::fill_n(values, known->size(input), known->number);
      });
  const bool registered = api_.register_scalar_function(connection_, function) == State::success;
  api_.destroy_scalar_function(&function);
  api_.destroy_logical_type(&bigint);
  return registered;
}

std::optional<std::uint64_t> DatabaseHandle::working_set_bytes() {
  const std::lock_guard one_at_a_time(asking_);
  if (memory_ == nullptr && api_.prepare(connection_, kWorkingSet, &memory_) != State::success) {
    api_.destroy_prepare(&memory_);
    return {};
  }
  Result result{};
  std::optional<std::uint64_t> bytes;
  if (api_.execute_prepared(memory_, &result) == State::success) {
    bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, api_.value_int64(&result, 0, 0)));
  }
  api_.destroy_result(&result);
  return bytes;
}

}  // namespace atl::duckdb
