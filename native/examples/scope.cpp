// A scope: waits for any number of children together; one child can stop the others.
#include <atoll/runtime.hpp>
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

// Counts the texts that contain the letter.
int count_with(const std::vector<std::string>& texts, char letter) {
  std::atomic<int> found{0};
  atl::Scope scope;
  for (const std::string& text : texts) {
    scope.fork([&] {
      if (text.find(letter) != std::string::npos) ++found;
    });
  }
  scope.join();
  return found;
}

// Whether any text contains it. Children that start after one was found do not search.
bool any_with(const std::vector<std::string>& texts, char letter) {
  std::atomic<bool> found{false};
  atl::Scope scope;
  for (const std::string& text : texts) {
    scope.fork([&] {
      if (atl::this_task::stop_token().stop_requested()) return;
      if (text.find(letter) == std::string::npos) return;
      found = true;
      scope.request_stop();
    });
  }
  scope.join();
  return found;
}

int main() {
  atl::Runtime runtime;
  const std::vector<std::string> islands = {"Bora Bora", "Rangiroa", "Tikehau", "Manihi"};
  const int with_r = runtime.run([&] { return count_with(islands, 'r'); });
  const bool any_x = runtime.run([&] { return any_with(islands, 'x'); });
  const bool any_k = runtime.run([&] { return any_with(islands, 'k'); });
  std::printf("%d with r; any with x: %d, with k: %d\n", with_r, any_x, any_k);
  return with_r == 2 && !any_x && any_k ? 0 : 1;
}
