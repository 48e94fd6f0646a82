#include "engine.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <latch>

namespace atl::sharedplan {
namespace {

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Gives the rows of an operator without takers to the queries that asked for them.
void answer(const Batch& rows, const Statements& statements) {
  const Cycle& cycle = *rows.cycle;
  for (const Statement statement : statements) {
    const std::size_t number = static_cast<std::size_t>(statement);
    const QuerySet& asking = cycle.asking[number];
    if (asking.empty()) continue;
    for (std::size_t at = 0; at < rows.size(); ++at) {
      (rows.sets[at] & asking).each([&](std::size_t query) {
        Rows& own = cycle.queries[query]->answers[number];
        own.insert(own.end(), rows.row(at), rows.row(at) + rows.width);
      });
    }
    asking.each([&](std::size_t query) {
      if (cycle.queries[query]->left.fetch_sub(1) == 1) cycle.answered(cycle.queries[query]);
    });
  }
}

}  // namespace

void allow_cpus(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  constexpr int kMostCpus = 8192;
  cpu_set_t* const set = CPU_ALLOC(kMostCpus);
  CPU_ZERO_S(CPU_ALLOC_SIZE(kMostCpus), set);
  for (const int cpu : cpus)
    CPU_SET_S(static_cast<std::size_t>(cpu), CPU_ALLOC_SIZE(kMostCpus), set);
  sched_setaffinity(0, CPU_ALLOC_SIZE(kMostCpus), set);
  CPU_FREE(set);
}

std::thread start_thread(std::function<void()> body) try {
  return std::thread(std::move(body));
} catch (const std::system_error&) {
  throw std::runtime_error(
      "a thread cannot be started; raise the limit of threads (ulimit -u, the cgroup's pids.max)");
}

void Meter::add(Clock::duration begin, Clock::duration end, double cpu_s, int cpu,
                const Usage& more) {
  const std::lock_guard lock(mutex_);
  usage_.in_bytes += more.in_bytes;
  usage_.out_bytes += more.out_bytes;
  usage_.table_bytes += more.table_bytes;
  usage_.own_bytes = std::max(usage_.own_bytes, more.own_bytes);
  usage_.cpu_s_by_cpu[cpu] += cpu_s;
  end = std::max(end, begin + Clock::duration(1));
  for (std::int64_t window = begin / kWindow; window * kWindow < end; ++window) {
    const Clock::duration from = std::max<Clock::duration>(begin, kWindow * window);
    const Clock::duration to = std::min<Clock::duration>(end, kWindow * (window + 1));
    usage_.cpu_s_by_window[window] += cpu_s * static_cast<double>((to - from).count()) /
                                      static_cast<double>((end - begin).count());
  }
}

Usage Meter::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(usage_, {});
}

// Delegates, so that the destructor ends those operators that have begun if another one cannot.
Engine::Engine(double scale, std::uint64_t seed, const Placement& placement, const Places& here)
    : Engine() {
  const std::span<const Spec> specs = plan();
  const auto node_of = [&](std::size_t at) { return core_of(here, placement.cpu_of[at])->node; };
  const bool placed = !placement.cpu_of.empty();

  tables_ = std::make_unique<Tables>(scale, seed, [&](const std::string& table, std::size_t rows) {
    for (std::size_t at = 0; placed && at < specs.size(); ++at) {
      if (std::ranges::find(specs[at].arguments, table) == specs[at].arguments.end()) continue;
      return Array<std::uint32_t>::local(rows, node_of(at));
    }
    return Array<std::uint32_t>::interleaved(rows, {here.nodes(), {}});
  });

  for (std::size_t at = 0; at < specs.size(); ++at) {
    std::pmr::memory_resource* memory =
        placed ? &local_memory(node_of(at)) : std::pmr::new_delete_resource();
    auto station = std::make_unique<Station>();
    station->spec = &specs[at];
    std::vector<Outputs> inputs;
    for (const std::string& input : specs[at].inputs) {
      const auto giver = std::find_if(stations_.begin(), stations_.end(),
                                      [&](const auto& each) { return each->spec->id == input; });
      if (giver == stations_.end()) throw std::logic_error("the plan has no " + input + " before");
      inputs.push_back((*giver)->made.outputs);
      station->inputs.push_back(std::make_unique<Channel<BatchPointer>>(1));
      (*giver)->takers.push_back(station->inputs.back().get());
    }
    if (inputs.empty()) station->inputs.push_back(std::make_unique<Channel<BatchPointer>>(1));
    station->made = make_operator(specs[at], *tables_, inputs, memory);
    station->pool = std::make_unique<BatchPool>(station->made.outputs.size(), memory);
    stations_.push_back(std::move(station));
  }
  beginnings_ = std::make_unique<BatchPool>(0, std::pmr::new_delete_resource());

  if (!placed) {
    for (const auto& station : stations_) {
      threads_.push_back(start_thread([this, &own = *station, cpus = placement.cpus] {
        allow_cpus(cpus);
        serve(own);
      }));
    }
    return;
  }
  const Places own = restrict_to_cpus(here, placement.cpus);
  runtime_ = std::make_unique<Runtime>(
      RuntimeOptions{.workers = static_cast<int>(own.cores.size()), .places = own, .pin = true});
  const std::vector<int> cores = runtime_->cores();
  for (std::size_t at = 0; at < specs.size(); ++at) {
    const int core = static_cast<int>(core_of(own, placement.cpu_of[at]) - own.cores.data());
    const auto rank = std::find(cores.begin(), cores.end(), core) - cores.begin();
    tasks_.push_back(
        runtime_->spawn(on_worker(static_cast<int>(rank)), [this, at] { serve(*stations_[at]); }));
  }
}

Engine::~Engine() {
  close();
  for (std::thread& thread : threads_) thread.join();
  for (Task<void>& task : tasks_) task.join();
  for (const auto& station : stations_) {  // batches go back to pools that are still there
    for (const auto& input : station->inputs) {
      while (input->pop()) {
      }
    }
  }
}

void Engine::close() {
  for (const auto& station : stations_) {
    for (const auto& input : station->inputs) input->close();
  }
}

void Engine::begin(const std::shared_ptr<const Cycle>& cycle) {
  std::shared_ptr<Batch> beginning = beginnings_->take();
  beginning->cycle = cycle;
  for (const auto& station : stations_) {
    if (station->spec->kind == Kind::kScan) station->inputs[0]->push(BatchPointer(beginning));
  }
  check();
}

void Engine::check() {
  const std::lock_guard lock(fault_mutex_);
  if (fault_) std::rethrow_exception(fault_);
}

void Engine::run(const std::vector<std::shared_ptr<Query>>& queries) {
  std::latch left(static_cast<std::ptrdiff_t>(queries.size()));
  begin(std::make_shared<Cycle>(queries, [&](const auto&) { left.count_down(); }));
  for (; !left.try_wait(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) check();
}

void Engine::serve(Station& station) try {
  station.tid = gettid();
  std::vector<BatchPointer> inputs;
  while (true) {
    inputs.clear();
    for (const auto& channel : station.inputs) {
      std::optional<BatchPointer> batch = channel->pop();
      if (!batch) return;
      inputs.push_back(std::move(*batch));
    }
    const auto begin = Clock::now();
    const double cpu_begin_s = thread_cpu_s();
    std::shared_ptr<Batch> out = station.pool->take();
    out->cycle = inputs[0]->cycle;
    Operator& own = *station.made.work;
    own.work(inputs, out->cycle->asking_any(station.spec->statements), *out);
    Usage usage;
    usage.out_bytes = out->bytes();
    usage.table_bytes = own.table_bytes();
    usage.own_bytes = own.own_bytes() + out->bytes();
    for (const BatchPointer& input : inputs) usage.in_bytes += input->bytes();
    if (station.takers.empty()) answer(*out, station.spec->statements);
    inputs.clear();
    if (watched) {
      station.meter.add(begin - began_, Clock::now() - began_, thread_cpu_s() - cpu_begin_s,
                        sched_getcpu(), usage);
    }
    for (Channel<BatchPointer>* const taker : station.takers) taker->push(BatchPointer(out));
  }
} catch (...) {
  {
    const std::lock_guard lock(fault_mutex_);
    if (!fault_) fault_ = std::current_exception();
  }
  close();
}

}  // namespace atl::sharedplan
