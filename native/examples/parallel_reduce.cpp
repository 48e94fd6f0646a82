// parallel_reduce: combines many values into one, in order, so `combine` need not commute.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

int main() {
  atl::Runtime runtime;
  const std::vector<std::string> words = {"a ", "ring ", "of ", "islets ", "round ", "a lagoon"};
  long sum = 0;
  std::string sentence;
  runtime.run([&] {
    sum = atl::parallel_reduce(1L, 1'000'001L, 0L, [](long i) { return i; }, std::plus<>());
    sentence = atl::parallel_reduce(
        words.begin(), words.end(), std::string(), [](const std::string& word) { return word; },
        std::plus<>(), 1);
  });
  std::printf("%ld; %s\n", sum, sentence.c_str());
  return sum == 500'000'500'000 && sentence == "a ring of islets round a lagoon" ? 0 : 1;
}
