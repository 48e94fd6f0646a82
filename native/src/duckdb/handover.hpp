// The interface between atoll.duckdb_extension and the pool. The extension is a separate file
// because DuckDB loads files; it has no logic and only passes on the database.
#pragma once

namespace atl::duckdb {

// The argument of an extension's entry function (DuckDB's C API for extensions, v1.2.0).
struct ExtensionAccess {
  void (*set_error)(void* info, const char* error);
  void** (*get_database)(void* info);  // a duckdb_database, valid during the call
  const void* (*get_api)(void* info, const char* version);
};

// Takes the database. Returns false after calling set_error. Throws nothing.
using Receiver = bool (*)(void* context, void* info, const ExtensionAccess* access);

// Exported by the extension. The next database of this thread that loads it goes to `receiver`;
// null: none is expected.
inline constexpr const char* kExpect = "atoll_duckdb_expect";
using Expect = void (*)(Receiver receiver, void* context);

}  // namespace atl::duckdb
