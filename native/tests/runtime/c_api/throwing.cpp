// Functions for c_tasks_test.c that throw, as a C++ function behind a C interface may.
#include <stdexcept>

extern "C" {
void throw_text(void*) { throw std::runtime_error("the page is torn"); }
void throw_number(void*) { throw 7; }
}
