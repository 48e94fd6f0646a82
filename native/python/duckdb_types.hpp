// Subclasses of DuckDB's own Python types whose methods report their calls to the pool.
//
// Assigning `__class__` turns a connection from `duckdb.connect` into such an object. It stays the
// same object, so DuckDB's own functions accept it. The methods are in C, without a Python frame,
// because DuckDB looks up unknown names (`select * from frame`) in the frame that called it.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

namespace atl::duckdb {

class Pool;

enum class MethodKind {
  query,     // runs the text in its first argument, unless it returns a relation
  fetch,     // continues the connection's query
  execute,   // runs the relation; its result is fetched later
  next,      // continues the relation's result, or runs it
  row,       // the same, one row at a time
  relation,  // the same, to the end
  other,     // may run something that is not a query
};

struct MethodSpec {
  std::string name;
  MethodKind kind;
};

struct TypeParts {
  PyObject* pool_object;  // keeps `pool` alive
  Pool* pool;
  PyObject* relation;  // DuckDB's own type of relations
  PyObject* adopt;     // called with a new relation and its source
  PyObject* refused;   // the error class for a child of fork()
};

// Makes a subclass of `base` (a DuckDB type) with the given name ("module.Name", static) and no
// memory of its own. Returns a new reference, or null with a Python error set.
PyObject* make_type(const char* name, PyObject* base, const std::vector<MethodSpec>& methods,
                    const TypeParts& parts);

// Call these in pairs, in one thread, around code in which DuckDB may release the interpreter's
// lock. The wrapped methods do so themselves.
void enter_call();
void leave_call();

// A number for the query that a call of this connection runs now: kFetch if the call continues one,
// 0 if there is no call, or the caller is inside another call.
constexpr std::uint64_t kFetch = 1;
std::uint64_t running_query(std::uintptr_t connection);

// Called repeatedly by the thread that ends the interpreter. From then on other threads stop at the
// end of their calls, because there will be no interpreter to return to. Returns how many are still
// inside calls.
int last_calls();

// Registers the type of the wrapped methods, once. Returns false with a Python error set.
bool prepare_types();

}  // namespace atl::duckdb
