// atoll.duckdb_extension: hands the database that it is loaded into over to the pool of the thread
// that loads it. A file of its own, without state that outlives the LOAD; a footer that DuckDB
// wants is appended when it is built (footer.py).
#include "handover.hpp"

namespace {

thread_local atl::duckdb::Receiver expecting = nullptr;
thread_local void* expecting_context = nullptr;

}  // namespace

extern "C" {

[[gnu::visibility("default")]] void atoll_duckdb_expect(atl::duckdb::Receiver receiver,
                                                        void* context) {
  expecting = receiver;
  expecting_context = context;
}

// The name is DuckDB's: the file's, then `_init_c_api`.
[[gnu::visibility("default")]] bool atoll_init_c_api(void* info,
                                                     const atl::duckdb::ExtensionAccess* access) {
  if (expecting == nullptr) {
    access->set_error(info,
                      "atoll is not loaded by SQL: open the database with atoll.duckdb.connect()");
    return false;
  }
  return expecting(expecting_context, info, access);
}
}
