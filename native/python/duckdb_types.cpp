#include "duckdb_types.hpp"

#include <pthread.h>
#include <structmember.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <thread>
#include <unordered_map>

#include "atoll/runtime/detail/worker.hpp"
#include "pool.hpp"

namespace atl::duckdb {

namespace {

// A wrapped method of a DuckDB type.
struct Method {
  PyObject_HEAD vectorcallfunc vectorcall;
  MethodKind kind;
  PyObject* original;  // DuckDB's method; takes self first
  PyObject* name;
  PyObject* sql_query;  // for relations; null: the type has none
  Pool* pool;
  PyObject* pool_object;
  PyObject* relation;
  PyObject* adopt;
  PyObject* refused;
};

Method* method(PyObject* object) { return reinterpret_cast<Method*>(object); }

std::string text_of(PyObject* object) {
  if (object == nullptr) return {};
  Py_ssize_t size = 0;
  if (PyUnicode_Check(object)) {
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text != nullptr) return {text, static_cast<std::size_t>(size)};
    PyErr_Clear();
    return {};
  }
  // A duckdb.Statement.
  PyObject* query = PyObject_GetAttrString(object, "query");
  if (query == nullptr) {
    PyErr_Clear();
    return {};
  }
  std::string text = PyUnicode_Check(query) ? text_of(query) : std::string();
  Py_DECREF(query);
  return text;
}

// Returns the text that a call runs.
std::string statement(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count > 1) return text_of(args[1]);
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t at = 0; at < named; ++at) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(keywords, at), "query") == 0) {
      return text_of(args[count + at]);
    }
  }
  return {};
}

std::string relation_text(const Method& self, PyObject* relation) {
  std::string text;
  if (self.sql_query != nullptr) {
    PyObject* made = PyObject_CallOneArg(self.sql_query, relation);
    if (made == nullptr) {
      PyErr_Clear();  // not every relation can be written as SQL
    } else {
      text = text_of(made);
      Py_DECREF(made);
    }
  }
  return text.empty() ? "relation." + text_of(self.name) : text;
}

// Waiting for the governor and reading DuckDB's memory use do not need the interpreter.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state_); }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// The number of threads inside calls, in all databases. The interpreter's lock guards it: a thread
// takes the lock again before it counts as outside.
int threads_inside = 0;
thread_local int depth = 0;  // of this thread, because a Python function may query
std::optional<std::thread::id> ends_interpreter;

// While another thread ends the interpreter, this one must stop here. DuckDB releases the lock in
// each call and when a connection is freed, and taking it again without an interpreter kills the
// process with a signal. Workers do not stop, because a Python function may wait for them: the
// ending thread waits for their end.
void stay_if_late() {
  if (depth > 0 || !ends_interpreter || *ends_interpreter == std::this_thread::get_id()) return;
  if (atl::detail::this_worker() != nullptr) return;
  const WithoutGil others_may_run;
  for (;;) pause();
}

// The calls inside of each connection. The interpreter's lock guards it.
struct Calls {
  int inside = 0;
  std::uint64_t query = 0;  // of the latest call
};
std::unordered_map<Pool::Owner, Calls> calls_of;
std::uint64_t queries_begun = kFetch;

// Counts a call of an owner as long as the interpreter's lock is not released on either side.
class OwnCall {
 public:
  OwnCall(Pool::Owner owner, Pool::Call::Kind kind) : owner_(owner) {
    Calls& calls = calls_of[owner];
    ++calls.inside;
    calls.query = kind == Pool::Call::Kind::query ? ++queries_begun : kFetch;
  }
  ~OwnCall() {
    const auto at = calls_of.find(owner_);  // none: the function forked, and this is the child
    if (at != calls_of.end() && --at->second.inside == 0) calls_of.erase(at);
  }
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

 private:
  Pool::Owner owner_;
};

PyObject* call_inside(PyObject* callable, PyObject* const* args, size_t flags, PyObject* keywords) {
  const Method& self = *method(callable);
  const Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (count < 1) {
    PyErr_Format(PyExc_TypeError, "%U() needs an argument", self.name);
    return nullptr;
  }
  if (!self.pool->usable()) {
    PyErr_SetString(self.refused,
                    "this connection was opened before a fork(); open the database again in the "
                    "child process");
    return nullptr;
  }
  PyObject* result = nullptr;
  try {
    const auto owner = reinterpret_cast<Pool::Owner>(args[0]);
    Pool::Call::Kind kind = Pool::Call::Kind::other;
    std::string text;
    switch (self.kind) {
      case MethodKind::query:
        kind = Pool::Call::Kind::query;
        text = statement(args, count, keywords);
        if (text.empty()) text = text_of(self.name);
        break;
      case MethodKind::fetch: kind = Pool::Call::Kind::fetch; break;
      case MethodKind::execute:
      case MethodKind::next:
      case MethodKind::row:
      case MethodKind::relation:
        if (self.kind != MethodKind::execute && self.pool->has_query(owner)) {
          // A row costs less than binding the thread (methods.py).
          if (self.kind == MethodKind::row) {
            return PyObject_Vectorcall(self.original, args, flags, keywords);
          }
          kind = Pool::Call::Kind::fetch;
        } else {
          kind = Pool::Call::Kind::query;
          text = relation_text(self, args[0]);
        }
        break;
      case MethodKind::other: break;
    }
    const OwnCall counted(owner, kind);
    std::optional<Pool::Call> running;
    {
      const WithoutGil others_may_run;
      running.emplace(*self.pool, kind, owner, std::move(text));
    }
    result = PyObject_Vectorcall(self.original, args, flags, keywords);
    if (result == nullptr) {
      running->failed();
    } else if (Py_TYPE(result) == reinterpret_cast<PyTypeObject*>(self.relation)) {
      running->is_no_query();
    }
    const WithoutGil others_may_run;
    running.reset();
    if (self.kind == MethodKind::relation) self.pool->forget(owner);  // ends its query
  } catch (const std::bad_alloc&) {
    Py_XDECREF(result);
    return PyErr_NoMemory();
  } catch (const std::exception& fault) {
    Py_XDECREF(result);
    PyErr_SetString(PyExc_RuntimeError, fault.what());
    return nullptr;
  }
  if (result == nullptr || Py_TYPE(result) != reinterpret_cast<PyTypeObject*>(self.relation)) {
    return result;
  }
  PyObject* const adopted = PyObject_CallFunctionObjArgs(self.adopt, result, args[0], nullptr);
  if (adopted == nullptr) {
    Py_DECREF(result);
    return nullptr;
  }
  Py_DECREF(adopted);
  return result;
}

PyObject* call(PyObject* callable, PyObject* const* args, size_t flags, PyObject* keywords) {
  enter_call();
  PyObject* const result = call_inside(callable, args, flags, keywords);
  leave_call();
  return result;
}

PyObject* bind(PyObject* self, PyObject* object, PyObject* /*type*/) {
  if (object == nullptr || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* doc_of(PyObject* self, void*) {
  return PyObject_GetAttrString(method(self)->original, "__doc__");
}

PyObject* represent(PyObject* self) {
  return PyUnicode_FromFormat("<method %U of a DuckDB database on Atoll's workers>",
                              method(self)->name);
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Method* const own = method(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(own->original);
  Py_VISIT(own->sql_query);
  Py_VISIT(own->pool_object);
  Py_VISIT(own->relation);
  Py_VISIT(own->adopt);
  Py_VISIT(own->refused);
  return 0;
}

int clear(PyObject* self) {
  Method* const own = method(self);
  Py_CLEAR(own->original);
  Py_CLEAR(own->sql_query);
  Py_CLEAR(own->pool_object);
  Py_CLEAR(own->relation);
  Py_CLEAR(own->adopt);
  Py_CLEAR(own->refused);
  return 0;
}

void deallocate(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_CLEAR(method(self)->name);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Method, vectorcall), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(Method, name), READONLY, nullptr},
    {"__wrapped__", T_OBJECT, offsetof(Method, original), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__doc__", doc_of, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
    {Py_tp_repr, reinterpret_cast<void*>(represent)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_dealloc, reinterpret_cast<void*>(deallocate)},
    {Py_tp_members, members},
    {Py_tp_getset, properties},
    {0, nullptr},
};

PyType_Spec spec = {"atoll._duckdb.Method", sizeof(Method), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                        Py_TPFLAGS_METHOD_DESCRIPTOR,
                    slots};

PyTypeObject* method_type = nullptr;

// Returns a new reference.
PyObject* make_method(PyObject* base, const MethodSpec& wanted, const TypeParts& parts) {
  PyObject* original = PyObject_GetAttrString(base, wanted.name.c_str());
  if (original == nullptr) return nullptr;
  PyObject* made = method_type->tp_alloc(method_type, 0);
  if (made == nullptr) {
    Py_DECREF(original);
    return nullptr;
  }
  Method& self = *method(made);
  self.vectorcall = call;
  self.kind = wanted.kind;
  self.original = original;
  self.sql_query = PyObject_GetAttrString(base, "sql_query");
  PyErr_Clear();  // connections do not have it
  self.name = PyUnicode_FromString(wanted.name.c_str());
  self.pool = parts.pool;
  self.pool_object = Py_NewRef(parts.pool_object);
  self.relation = Py_NewRef(parts.relation);
  self.adopt = Py_NewRef(parts.adopt);
  self.refused = Py_NewRef(parts.refused);
  if (self.name == nullptr) Py_CLEAR(made);
  return made;
}

}  // namespace

void enter_call() {
  stay_if_late();
  if (depth++ == 0) ++threads_inside;
}

void leave_call() {
  if (--depth == 0) --threads_inside;
  stay_if_late();
}

std::uint64_t running_query(std::uintptr_t connection) {
  // Inside of another call, only a Python function that DuckDB runs can ask: it must not wait.
  const auto at = depth > 1 ? calls_of.end() : calls_of.find(connection);
  return at == calls_of.end() ? 0 : at->second.query;
}

int last_calls() {
  ends_interpreter = std::this_thread::get_id();
  return threads_inside - (depth > 0 ? 1 : 0);
}

bool prepare_types() {
  // A child of fork() has no other threads.
  pthread_atfork(nullptr, nullptr, [] {
    threads_inside = depth > 0 ? 1 : 0;
    calls_of.clear();
    ends_interpreter.reset();
  });
  method_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return method_type != nullptr;
}

PyObject* make_type(const char* name, PyObject* base, const std::vector<MethodSpec>& methods,
                    const TypeParts& parts) {
  // Not with a class statement: its instances would get a header for the garbage collector, and
  // then no object of DuckDB's could become one.
  // Freed the way DuckDB frees its objects. Python would call `__del__` first, which closes a
  // connection's cursors; DuckDB does not.
  auto* const own = reinterpret_cast<PyTypeObject*>(base);
  PyType_Slot own_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(own->tp_dealloc)},
                             {0, nullptr}};
  PyType_Spec subclass = {name, 0, 0, Py_TPFLAGS_DEFAULT, own_slots};
  PyObject* bases = PyTuple_Pack(1, base);
  if (bases == nullptr) return nullptr;
  PyObject* type = PyType_FromSpecWithBases(&subclass, bases);
  Py_DECREF(bases);
  for (const MethodSpec& wanted : methods) {
    if (type == nullptr) return nullptr;
    PyObject* wrapped = make_method(base, wanted, parts);
    if (wrapped == nullptr || PyObject_SetAttrString(type, wanted.name.c_str(), wrapped) != 0) {
      Py_CLEAR(type);
    }
    Py_XDECREF(wrapped);
  }
  return type;
}

}  // namespace atl::duckdb
