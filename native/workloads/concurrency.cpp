#include "concurrency.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

namespace atl::kernels {
namespace {

// The threads of the process, without the calling one. A thread that ends meanwhile is skipped.
template <class Visit>  // visit(state): a letter, as `man 5 proc` explains them
void for_each_other_thread(Visit&& visit) {
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(::opendir("/proc/self/task"), ::closedir);
  if (!tasks) return;
  const std::string own = std::to_string(::gettid());
  while (const dirent* const task = ::readdir(tasks.get())) {
    if (task->d_name[0] == '.' || own == task->d_name) continue;
    const std::string path = std::string(task->d_name) + "/stat";
    const int file = ::openat(::dirfd(tasks.get()), path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    char text[256];
    const ssize_t size = ::read(file, text, sizeof text - 1);
    ::close(file);
    if (size <= 0) continue;
    text[size] = '\0';
    // "TID (NAME) STATE ...", and a name may have parentheses.
    const char* const name_end = std::strrchr(text, ')');
    if (name_end != nullptr && name_end + 2 < text + size) visit(name_end[2]);
  }
}

}  // namespace

struct Concurrency::State {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool on = false;
  bool over = false;
  std::vector<int> running;

  void look_on() {
    const auto every = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(kEverySeconds));
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return on || over; });
      auto next = std::chrono::steady_clock::now();
      while (on && !over) {
        int count = 0;
        for_each_other_thread([&](char state) { count += state == 'R' ? 1 : 0; });
        running.push_back(count);
        next += every;
        changed.wait_until(lock, next, [&] { return !on || over; });
      }
      if (over) return;
    }
  }
  // Last, so that the thread finds the rest.
  std::thread thread{[this] { look_on(); }};
};

Concurrency::Concurrency() : state_(std::make_unique<State>()) {}

Concurrency::~Concurrency() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
  }
  state_->changed.notify_one();
  state_->thread.join();
}

void Concurrency::watch(bool on) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->on = on;
  }
  state_->changed.notify_one();
}

const std::vector<int>& Concurrency::running() const { return state_->running; }

int Concurrency::threads() {
  int count = 0;  // the caller in place of the sampler
  for_each_other_thread([&](char) { ++count; });
  return count;
}

}  // namespace atl::kernels
