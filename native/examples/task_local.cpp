// Task-locals: a value per task, independent of its worker.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <string>
#include <vector>

inline atl::TaskLocal<std::string> query([] { return std::string("none"); });

// Deep in the code, where passing the name along would be inconvenient.
bool is_query(const std::string& name) { return query.get() == name; }

int main() {
  atl::Runtime runtime;
  int wrong = 0;
  runtime.run([&] {
    std::vector<atl::Task<bool>> tasks;
    for (int number = 0; number < 10; ++number) {
      tasks.push_back(atl::spawn([number] {
        *query = "Q" + std::to_string(number);
        atl::yield();  // it may continue on another worker
        auto child = atl::fork([&] { return is_query("Q" + std::to_string(number)); });
        return child.join();  // a fork shares its task's value
      }));
    }
    for (auto& task : tasks) wrong += !task.join();
    wrong += !is_query("none");  // this task has its own value
  });
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
