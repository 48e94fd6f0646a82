// atoll.duckdb_extension: passes the database that loads it on to the pool of the loading thread.
// A separate file, with no state after the LOAD. The build appends the footer that DuckDB needs
// (footer.py).
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

// DuckDB requires this name: the file's name, then `_init_c_api`.
[[gnu::visibility("default")]] bool atoll_init_c_api(void* info,
                                                     const atl::duckdb::ExtensionAccess* access) {
  if (expecting == nullptr) {
    access->set_error(info,
                      "do not load atoll in SQL; open the database with atoll.duckdb.connect()");
    return false;
  }
  return expecting(expecting_context, info, access);
}
}
