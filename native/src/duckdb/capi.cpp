#include "capi.hpp"

#include <dlfcn.h>

namespace atl::duckdb {

std::string find_capi(const void* address, Capi& found) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) {
    return "cannot find the library that contains DuckDB";
  }
  // If DuckDB is linked into the program, this is the program's name, which is not a library.
  void* library = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_NOW);
  if (library == nullptr) library = dlopen(nullptr, RTLD_NOW);
  std::string missing;
  const auto find = [&](const char* name, auto& function) {
    // The library stays loaded anyway, so dlclose below is safe.
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) {
      missing = std::string(info.dli_fname) + " has no " + name;
    }
  };
  find("duckdb_create_task_state", found.create_task_state);
  find("duckdb_execute_tasks_state", found.execute_tasks_state);
  find("duckdb_finish_execution", found.finish_execution);
  find("duckdb_destroy_task_state", found.destroy_task_state);
  find("duckdb_connect", found.connect);
  find("duckdb_disconnect", found.disconnect);
  find("duckdb_prepare", found.prepare);
  find("duckdb_destroy_prepare", found.destroy_prepare);
  find("duckdb_execute_prepared", found.execute_prepared);
  find("duckdb_value_int64", found.value_int64);
  find("duckdb_destroy_result", found.destroy_result);
  find("duckdb_create_logical_type", found.create_logical_type);
  find("duckdb_destroy_logical_type", found.destroy_logical_type);
  find("duckdb_create_scalar_function", found.create_scalar_function);
  find("duckdb_destroy_scalar_function", found.destroy_scalar_function);
  find("duckdb_scalar_function_set_name", found.scalar_function_set_name);
  find("duckdb_scalar_function_set_return_type", found.scalar_function_set_return_type);
  find("duckdb_scalar_function_set_extra_info", found.scalar_function_set_extra_info);
  find("duckdb_scalar_function_set_function", found.scalar_function_set_function);
  find("duckdb_scalar_function_get_extra_info", found.scalar_function_get_extra_info);
  find("duckdb_register_scalar_function", found.register_scalar_function);
  find("duckdb_data_chunk_get_size", found.data_chunk_get_size);
  find("duckdb_vector_get_data", found.vector_get_data);
  if (library != nullptr) dlclose(library);
  return missing;
}

}  // namespace atl::duckdb
