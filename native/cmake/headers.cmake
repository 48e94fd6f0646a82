# The headers that most of our files want, parsed once and not 200 times: a third of a build.
# Every file still includes what it uses: without them (CMAKE_DISABLE_PRECOMPILE_HEADERS) all
# builds as well, and runtime-lto-tests builds the runtime so in every release build.
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
