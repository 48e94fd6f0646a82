// The functions of DuckDB's C API that the pool calls, looked up in the library that contains
// DuckDB, so that programs need not link it. Declared as in its documentation; handles are opaque.
#pragma once

#include <cstdint>
#include <string>

namespace atl::duckdb {

using Database = void*;
using Connection = void*;
using TaskState = void*;
using Prepared = void*;
using LogicalType = void*;
using ScalarFunction = void*;
using FunctionInfo = void*;
using DataChunk = void*;
using Vector = void*;

enum class State : int { success = 0, error = 1 };

struct Result {  // duckdb_result
  std::uint64_t deprecated_column_count;
  std::uint64_t deprecated_row_count;
  std::uint64_t deprecated_rows_changed;
  void* deprecated_columns;
  char* deprecated_error_message;
  void* internal_data;
};

constexpr int kTypeBigint = 5;  // DUCKDB_TYPE_BIGINT

struct Capi {
  TaskState (*create_task_state)(Database);
  void (*execute_tasks_state)(TaskState);
  void (*finish_execution)(TaskState);
  void (*destroy_task_state)(TaskState);
  State (*connect)(Database, Connection*);
  void (*disconnect)(Connection*);
  State (*prepare)(Connection, const char*, Prepared*);
  void (*destroy_prepare)(Prepared*);
  State (*execute_prepared)(Prepared, Result*);
  std::int64_t (*value_int64)(Result*, std::uint64_t column, std::uint64_t row);
  void (*destroy_result)(Result*);
  LogicalType (*create_logical_type)(int);
  void (*destroy_logical_type)(LogicalType*);
  ScalarFunction (*create_scalar_function)();
  void (*destroy_scalar_function)(ScalarFunction*);
  void (*scalar_function_set_name)(ScalarFunction, const char*);
  void (*scalar_function_set_return_type)(ScalarFunction, LogicalType);
  void (*scalar_function_set_extra_info)(ScalarFunction, void*, void (*destroy)(void*));
  void (*scalar_function_set_function)(ScalarFunction, void (*)(FunctionInfo, DataChunk, Vector));
  void* (*scalar_function_get_extra_info)(FunctionInfo);
  State (*register_scalar_function)(Connection, ScalarFunction);
  std::uint64_t (*data_chunk_get_size)(DataChunk);
  void* (*vector_get_data)(Vector);
};

// Looks them up in the library that contains `address`. Returns what is missing, or "".
std::string find_capi(const void* address, Capi& found);

}  // namespace atl::duckdb
