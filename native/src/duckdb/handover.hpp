// What atoll.duckdb_extension and the pool say to each other. The extension is a file of its own
// because DuckDB loads files; it knows nothing and hands over what it is given.
#pragma once

namespace atl::duckdb {

// What DuckDB gives the entry function of an extension (its C API for extensions, v1.2.0).
struct ExtensionAccess {
  void (*set_error)(void* info, const char* error);
  void** (*get_database)(void* info);  // a duckdb_database, valid during the call
  const void* (*get_api)(void* info, const char* version);
};

// Takes the database; false: it has called set_error. Throws nothing.
using Receiver = bool (*)(void* context, void* info, const ExtensionAccess* access);

// Exported by the extension. The next database that this thread loads it into goes to `receiver`;
// null: none is expected.
inline constexpr const char* kExpect = "atoll_duckdb_expect";
using Expect = void (*)(Receiver receiver, void* context);

}  // namespace atl::duckdb
