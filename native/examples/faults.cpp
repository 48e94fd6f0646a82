// An impossible request throws a RuntimeFault: one line that says what to do.
#include <atoll/runtime.hpp>
#include <cstdio>
#include <string>

// Returns the message of the exception that `call` throws, or "".
template <class Call>
std::string fault_of(Call call) {
  try {
    call();
  } catch (const atl::RuntimeFault& fault) {
    return fault.what();
  }
  return "";
}

int main() {
  const std::string outside = fault_of([] { atl::spawn([] {}).join(); });
  const std::string workers = fault_of([] { atl::Runtime runtime({.workers = -1}); });
  const std::string approach = fault_of([] { atl::Runtime runtime({.approach = "fastest"}); });
  std::printf("%s\n%s\n%s\n", outside.c_str(), workers.c_str(), approach.c_str());
  return outside.empty() || workers.empty() || approach.empty() ? 1 : 0;
}
