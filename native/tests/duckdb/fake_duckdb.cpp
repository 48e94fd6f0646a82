// Stands in for DuckDB and for Atoll's extension of it: hands over a database at once, whose tasks
// never come and whose queries fail.
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "handover.hpp"

#define FAKE extern "C" [[gnu::visibility("default")]]

namespace {

struct State {
  std::mutex mutex;
  std::condition_variable over;
  bool finished = false;
};

int something = 0;
void* database = &something;

}  // namespace

FAKE void* duckdb_create_task_state(void*) { return new State; }
FAKE void duckdb_execute_tasks_state(void* made) {
  auto& state = *static_cast<State*>(made);
  std::unique_lock lock(state.mutex);
  state.over.wait(lock, [&] { return state.finished; });
}
FAKE void duckdb_finish_execution(void* made) {
  auto& state = *static_cast<State*>(made);
  const std::lock_guard lock(state.mutex);
  state.finished = true;
  state.over.notify_all();
}
FAKE void duckdb_destroy_task_state(void* made) { delete static_cast<State*>(made); }
FAKE int duckdb_connect(void*, void** connection) {
  *connection = &something;
  return 0;
}
FAKE void duckdb_disconnect(void**) {}
FAKE int duckdb_prepare(void*, const char*, void** prepared) {
  *prepared = nullptr;
  return 1;
}
FAKE void duckdb_destroy_prepare(void**) {}
FAKE int duckdb_execute_prepared(void*, void*) { return 1; }
FAKE std::int64_t duckdb_value_int64(void*, std::uint64_t, std::uint64_t) { return 0; }
FAKE void duckdb_destroy_result(void*) {}
FAKE void* duckdb_create_logical_type(int) { return &something; }
FAKE void duckdb_destroy_logical_type(void**) {}
FAKE void* duckdb_create_scalar_function() { return &something; }
FAKE void duckdb_destroy_scalar_function(void**) {}
FAKE void duckdb_scalar_function_set_name(void*, const char*) {}
FAKE void duckdb_scalar_function_set_return_type(void*, void*) {}
FAKE void duckdb_scalar_function_set_extra_info(void*, void* extra, void (*destroy)(void*)) {
  destroy(extra);
}
FAKE void duckdb_scalar_function_set_function(void*, void (*)(void*, void*, void*)) {}
FAKE void* duckdb_scalar_function_get_extra_info(void*) { return nullptr; }
FAKE int duckdb_register_scalar_function(void*, void*) { return 0; }
FAKE std::uint64_t duckdb_data_chunk_get_size(void*) { return 0; }
FAKE void* duckdb_vector_get_data(void*) { return nullptr; }

FAKE void atoll_duckdb_expect(atl::duckdb::Receiver receiver, void* context) {
  static const atl::duckdb::ExtensionAccess access{
      [](void*, const char*) {}, [](void*) { return &database; },
      [](void*, const char*) -> const void* { return &something; }};
  if (receiver != nullptr) receiver(context, nullptr, &access);
}
