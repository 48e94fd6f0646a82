// atoll._duckdb: Python bindings of the pool of DuckDB's workers, without logic; see atoll.duckdb.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <utility>

#include "duckdb_types.hpp"
#include "places/cpu_limit.hpp"
#include "pool.hpp"

namespace nb = nanobind;

namespace {

using namespace atl::duckdb;

Policy policy_of(const std::string& name) {
  if (name == "adaptive") return Policy::adaptive;
  if (name == "local") return Policy::local;
  if (name == "distributed") return Policy::distributed;
  if (name == "none") return Policy::none;
  throw atl::RuntimeFault("no such policy: '" + name + "'");
}

MethodKind kind_of(const std::string& name) {
  if (name == "query") return MethodKind::query;
  if (name == "fetch") return MethodKind::fetch;
  if (name == "relation") return MethodKind::relation;
  if (name == "execute") return MethodKind::execute;
  if (name == "next") return MethodKind::next;
  if (name == "row") return MethodKind::row;
  return MethodKind::other;
}

atl::Places live_places(const std::optional<std::vector<int>>& cpus) {
  try {
    const nb::gil_scoped_release others_may_run;
    const atl::Places here = atl::places_here();
    return cpus ? atl::restrict_to_cpus(here, *cpus) : here;
  } catch (const std::exception&) {
    // Ctrl-C also ends the reading child; that is not a fault of the topology.
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    throw;
  }
}

nb::object fills_of(const std::optional<atl::FillCounts>& fills) {
  if (!fills) return nb::none();
  nb::dict out;
  const char* const names[] = {"local_chiplet", "remote_chiplet", "node_cache",
                               "remote_node",   "memory_local",   "memory_remote"};
  for (std::size_t source = 0; source < atl::kFillSources; ++source) {
    out[names[source]] = nb::cast(fills->by_source[source]);
  }
  out["running_share"] = fills->running_share;
  return out;
}

nb::list queries(const Pool& pool) {
  nb::list out;
  for (const QueryRecord& query : pool.queries()) {
    nb::dict one;
    one["sql"] = query.sql;
    one["policy"] = query.policy;
    one["spread"] = query.spread;
    one["reason"] = query.reason;
    one["started_s"] = query.started_s;
    one["wall_s"] = query.wall_s;
    one["cpu_s"] = query.cpu_s;
    one["caller_cpu_s"] = query.caller_cpu_s;
    one["working_set_bytes"] = query.working_set_bytes;
    one["alone"] = query.alone;
    one["fills"] = fills_of(query.fills);
    one["failed"] = query.failed;
    out.append(one);
  }
  return out;
}

nb::list spreads(const Pool& pool) {
  nb::list out;
  for (const SpreadChange& change : pool.spreads()) {
    nb::dict one;
    one["t_s"] = change.t_s;
    one["spread"] = change.spread;
    one["reason"] = change.reason;
    out.append(one);
  }
  return out;
}

nb::list threads(const Pool& pool) {
  nb::list out;
  for (const ThreadSeat& seat : pool.threads()) {
    nb::dict one;
    one["tid"] = seat.tid;
    one["rank"] = seat.rank;
    one["role"] = seat.caller ? "caller" : "worker";
    one["cpus"] = seat.cpus;
    one["chiplet"] = seat.chiplet;
    out.append(one);
  }
  return out;
}

nb::object make_subclass(const std::string& which, nb::handle base,
                         const std::vector<std::pair<std::string, std::string>>& methods,
                         nb::handle pool, nb::handle relation, nb::handle adopt,
                         nb::handle refused) {
  std::vector<MethodSpec> wanted;
  for (const auto& [name, kind] : methods) wanted.push_back({name, kind_of(kind)});
  const char* const name =
      which == "relation" ? "atoll.duckdb.DuckDBPyRelation" : "atoll.duckdb.DuckDBPyConnection";
  const TypeParts parts{pool.ptr(), nb::cast<Pool*>(pool), relation.ptr(), adopt.ptr(),
                        refused.ptr()};
  PyObject* const type = make_type(name, base.ptr(), wanted, parts);
  if (type == nullptr) throw nb::python_error();
  return nb::steal(type);
}

}  // namespace

NB_MODULE(_duckdb, module) {
  // Objects that live until the interpreter ends are not leaks.
  nb::set_leak_warnings(false);
  if (!prepare_types()) throw nb::python_error();

  nb::class_<atl::Places>(module, "Places")
      .def_static("live", &live_places, nb::arg("cpus").none())
      .def_static("made_up",
                  [](const std::string& words, const std::vector<int>& cpus) {
                    return atl::synthetic_places(words, cpus);
                  })
      .def_prop_ro("cores", [](const atl::Places& places) { return places.cores.size(); })
      .def_prop_ro("workers",
                   [](const atl::Places& places) { return atl::runtime::default_workers(places); })
      .def_prop_ro("chiplets", &atl::Places::chiplets);

  nb::class_<DatabaseHandle>(module, "DatabaseHandle")
      .def(nb::new_([](std::int64_t number) { return std::make_unique<DatabaseHandle>(number); }))
      .def("expect", &DatabaseHandle::expect)
      .def("expect_no_more", &DatabaseHandle::expect_no_more)
      .def_prop_ro("arrived", &DatabaseHandle::arrived);

  using Free = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Pool>(module, "Pool")
      .def("__init__",
           [](Pool* self, std::unique_ptr<DatabaseHandle> database, int workers,
              const std::string& policy, const atl::Places& places) {
             const PoolOptions options{workers, policy_of(policy), places};
             const nb::gil_scoped_release others_may_run;
             new (self) Pool(std::move(database), options);
           })
      .def("stop", &Pool::stop, Free())
      .def("give_up", &Pool::give_up)
      .def_prop_ro("usable", &Pool::usable)
      .def("forget", &Pool::forget, Free())
      .def_prop_ro("policy", [](const Pool& pool) { return name_of(pool.policy()); })
      .def(
          "set_policy",
          [](Pool& pool, const std::string& name) { pool.set_policy(policy_of(name)); }, Free())
      .def("set_spread", &Pool::set_spread, Free())
      .def_prop_ro("workers", &Pool::workers)
      .def_prop_ro("chiplets", &Pool::chiplets)
      .def_prop_ro("spread", &Pool::spread)
      .def("threads", &threads)
      .def("queries", &queries)
      .def_prop_ro("queries_left_out", &Pool::queries_left_out)
      .def("spreads", &spreads)
      .def(
          "runtime_profile",
          [](const Pool& pool) { return atl::profile_json(pool.runtime_profile()); }, Free());

  module.def("make_subclass", &make_subclass);
  module.def("running_query", &running_query);
  module.attr("FETCH") = kFetch;
  module.def("enter_call", &enter_call);
  module.def("leave_call", &leave_call);
  module.def("last_calls", &last_calls);
}
