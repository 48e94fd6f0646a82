#include "reservation.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

namespace atl::runtime {

namespace {

constexpr std::size_t kHuge2m = std::size_t{1} << 21;
constexpr std::size_t kHuge1g = std::size_t{1} << 30;

std::size_t unit_of(Pages pages) {
  switch (pages) {
    case Pages::transparent: return huge_page_bytes();
    case Pages::huge2m: return kHuge2m;
    case Pages::huge1g: return kHuge1g;
    case Pages::normal: break;
  }
  return page_bytes();
}

std::string no_pool(std::size_t bytes, std::size_t page, int error) {
  const std::string kib = std::to_string(page >> 10);
  if (error == EINVAL || error == ENODEV || error == ENOSYS) {
    return "this kernel or CPU has no huge pages of " + kib +
           " KiB; take Pages::transparent or Pages::normal";
  }
  const std::string fix = page == kHuge2m
                              ? "'sysctl vm.nr_hugepages=N'"
                              : "'echo N >/sys/kernel/mm/hugepages/hugepages-" + kib +
                                    "kB/nr_hugepages', or at boot 'hugepagesz=1G hugepages=N'";
  return std::to_string(bytes / page) + " huge pages of " + kib + " KiB: " + in_words(error) +
         "; make the pool larger by " + fix + " as root";
}

}  // namespace

Reservation::Reservation(PagePolicy& policy, std::size_t bytes, Pages pages)
    : bytes_(bytes), unit_bytes_(unit_of(pages)) {
  if (bytes == 0) return;
  // Room for alignment and for the two inaccessible pages.
  const std::size_t slack = unit_bytes_ + 2 * page_bytes();
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  if (bytes > kMost - slack - unit_bytes_) {
    throw RuntimeFault("an array of " + std::to_string(bytes) + " bytes is too large");
  }
  whole_bytes_ = (bytes + unit_bytes_ - 1) / unit_bytes_ * unit_bytes_;
  if (pages == Pages::huge2m || pages == Pages::huge1g) {
    const int error = policy.map_pool(whole_bytes_, unit_bytes_, mapping_);
    if (error != 0) throw RuntimeFault(no_pool(whole_bytes_, unit_bytes_, error));
    mapping_bytes_ = whole_bytes_;
    data_ = mapping_;
    of_pool_ = true;
    return;
  }
  mapping_bytes_ = whole_bytes_ + slack;
  try {
    reserve(policy, pages);
  } catch (...) {
    if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
    throw;
  }
}

void Reservation::reserve(PagePolicy& policy, Pages pages) {
  const auto no_memory = [this] {
    return RuntimeFault("an array of " + std::to_string(bytes_ >> 20) + " MiB: " + in_words(errno) +
                        "; ask for less, or raise 'ulimit -v' or vm.overcommit_memory");
  };
  void* const mapped = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw no_memory();
  mapping_ = static_cast<std::byte*>(mapped);
  const std::size_t first = reinterpret_cast<std::uintptr_t>(mapping_) + page_bytes();
  data_ = mapping_ + page_bytes() + (unit_bytes_ - first % unit_bytes_) % unit_bytes_;
  // The kernel's overcommit rules check the size here.
  if (mprotect(data_, whole_bytes_, PROT_READ | PROT_WRITE) != 0) throw no_memory();
  if (pages != Pages::transparent) return;
  const int error = policy.want_huge(data_, whole_bytes_);
  if (error == ENOTSUP) {
    throw RuntimeFault(
        "transparent huge pages are switched off; 'echo madvise "
        ">/sys/kernel/mm/transparent_hugepage/enabled' as root, or take Pages::normal");
  }
  if (error != 0) {
    throw RuntimeFault("transparent huge pages: " + in_words(error) +
                       "; this kernel has none, take Pages::normal");
  }
}

Reservation::~Reservation() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

}  // namespace atl::runtime
