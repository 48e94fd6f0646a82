// blocking: a call that blocks in the kernel runs on its own thread, and the worker continues.
#include <unistd.h>

#include <array>
#include <atoll/runtime.hpp>
#include <cerrno>
#include <cstdio>
#include <system_error>

int main() {
  std::array<int, 2> ends;
  if (pipe(ends.data()) != 0) return 1;
  atl::Runtime runtime({.workers = 1});
  int got = 0;
  bool refused = false;
  runtime.run([&] {
    // On the only worker this read would wait forever for the write below.
    auto reader = atl::spawn([&] {
      return atl::blocking([&] {
        char byte = 0;
        return read(ends[0], &byte, 1) == 1 ? byte : 0;
      });
    });
    atl::yield();
    const char byte = 7;
    if (write(ends[1], &byte, 1) == 1) got = reader.join();

    // Read errno inside the call: afterwards it is that of another thread.
    try {
      atl::blocking([] {
        if (close(-1) != 0) throw std::system_error(errno, std::generic_category());
      });
    } catch (const std::system_error& error) {
      refused = error.code() == std::errc::bad_file_descriptor;
    }
  });
  std::printf("read %d; refused: %d\n", got, refused);
  return got == 7 && refused ? 0 : 1;
}
