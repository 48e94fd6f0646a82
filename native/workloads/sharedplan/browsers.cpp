#include "browsers.hpp"

#include <cmath>

namespace atl::sharedplan {

Browsers::Browsers(Engine& engine, const Asking& asking, const std::vector<int>& cpus)
    : engine_(engine), asking_(asking), sampled_(interactions().size()) {
  for (std::size_t browser = 0; browser < asking.browsers; ++browser) {
    due_.emplace(Clock::now(), browser);
  }
  thread_ = start_thread([this, cpus] {
    allow_cpus(cpus);
    ask_all();
  });
}

Browsers::~Browsers() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  lock.unlock();
  thread_.join();
}

Answers Browsers::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(answers_, {});
}

void Browsers::ask_all() try {
  for (auto queries = waiting(); !queries.empty(); queries = waiting()) {
    engine_.begin(std::make_shared<Cycle>(
        std::move(queries), [this](const std::shared_ptr<Query>& query) { answered(query); }));
  }
} catch (...) {  // an operator failed: Engine::check throws it again
}

std::vector<std::shared_ptr<Query>> Browsers::waiting() {
  std::vector<std::shared_ptr<Query>> queries;
  std::unique_lock lock(mutex_);
  while (!ending_ && (due_.empty() || due_.top().first > Clock::now())) {
    if (due_.empty()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, due_.top().first);
    }
  }
  const auto now = Clock::now();
  while (!ending_ && queries.size() < kMostQueries && !due_.empty() && due_.top().first <= now) {
    const std::uint64_t random = mixed(asking_.seed, ++asked_);
    auto query = std::make_shared<Query>(draw_interaction(random),
                                         draw_parameters(engine_.tables(), mixed(random, 1)));
    query->browser = due_.top().second;
    query->asked = due_.top().first;
    due_.pop();
    queries.push_back(std::move(query));
  }
  left_ += queries.size();
  if (engine_.watched && !queries.empty()) ++answers_.cycles;
  while (ending_ && left_ > 0) {
    changed_.wait_for(lock, kWindow);
    engine_.check();
  }
  return queries;
}

void Browsers::answered(const std::shared_ptr<Query>& query) {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  --left_;
  if (engine_.watched) {
    answers_.all.push_back({now, std::chrono::duration<float>(now - query->asked).count()});
    if (now - sampled_[query->interaction] >= std::chrono::seconds(1)) {
      sampled_[query->interaction] = now;
      answers_.samples.push_back(query);
    }
  }
  Clock::time_point next = now;
  if (asking_.think.count() > 0) {
    const double drawn = static_cast<double>(mixed(asking_.seed, ++asked_) >> 11) * 0x1p-53;
    next += std::chrono::duration_cast<Clock::duration>(asking_.think * -std::log1p(-drawn));
  }
  due_.emplace(next, query->browser);
  changed_.notify_one();
}

}  // namespace atl::sharedplan
