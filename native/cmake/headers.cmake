# The headers that most of our files want, parsed once and not 200 times: a third of a build.
# Every file still includes what it uses; runtime-lto-tests builds the runtime without these.
# A compiler that cannot use what it has precompiled reads the headers as they are.
set(CMAKE_PCH_WARN_INVALID OFF)
set(ATOLL_HEADERS
    <algorithm>
    <array>
    <atomic>
    <chrono>
    <fstream>
    <functional>
    <map>
    <memory>
    <mutex>
    <optional>
    <set>
    <span>
    <stop_token>
    <string>
    <thread>
    <vector>
)

add_library(atoll-headers OBJECT ${CMAKE_CURRENT_LIST_DIR}/headers.cpp)
target_precompile_headers(atoll-headers PRIVATE ${ATOLL_HEADERS})
