// Subclasses of DuckDB's own Python types whose methods tell the pool that they run.
//
// A connection that `duckdb.connect` made becomes one by assigning its `__class__`, so it stays the
// object that DuckDB's own functions take. The methods are C, without a Python frame: DuckDB looks
// up names that a query does not know (`select * from frame`) in the frame that called it.
#pragma once

#include <Python.h>

#include <string>
#include <vector>

namespace atl::duckdb {

class Pool;

enum class MethodKind {
  query,     // runs the text that is its first argument, unless it gives a relation
  fetch,     // goes on with the connection's query
  execute,   // runs the relation; its result is fetched later
  next,      // goes on with the relation's result, or runs it
  row,       // the same, by the row
  relation,  // the same, to the end
  other,     // may run something that is no query of its own
};

struct MethodSpec {
  std::string name;
  MethodKind kind;
};

struct TypeParts {
  PyObject* pool_object;  // keeps `pool` alive
  Pool* pool;
  PyObject* relation;  // DuckDB's own type of relations
  PyObject* adopt;     // called with a new relation and what it was made from
  PyObject* refused;   // the error in a child of fork()
};

// A subclass of `base` (a DuckDB type) of this name ("module.Name", static) without memory of its
// own. A new reference; null with a Python error.
PyObject* make_type(const char* name, PyObject* base, const std::vector<MethodSpec>& methods,
                    const TypeParts& parts);

// Around what may give the interpreter's lock back in DuckDB; the wrapped methods do it themselves.
// By one thread, in pairs.
void enter_call();
void leave_call();

// By the thread that ends the interpreter, again and again: other threads go no further than to the
// end of their calls from now on, as there will be no interpreter to come back to. How many are
// inside still.
int last_calls();

// Makes the type of the wrapped methods known; false with a Python error. Once.
bool prepare_types();

}  // namespace atl::duckdb
