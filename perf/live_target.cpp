// A process with THREADS threads, of which BUSY run for a moment every 100 ms and the others sleep.
// It prints a line when all have begun, and ends when its stdin does.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

int main(int count, char** words) {
  if (count != 3) {
    return 2;
  }
  const int threads = std::atoi(words[1]);
  const int busy = std::atoi(words[2]);
  std::vector<std::thread> all;
  for (int number = 1; number < threads; ++number) {  // main is one of them
    all.emplace_back([number, busy] {
      while (number <= busy) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(50);
        while (std::chrono::steady_clock::now() < until) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      for (;;) {
        pause();
      }
    });
  }
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
  std::_Exit(0);
}
