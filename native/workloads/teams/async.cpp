// std::async: a thread for each piece, as in DimmWitted's baseline of ARCAS 5.4.2. As many run at a
// time as there are workers; the others wait for a free rank.
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <vector>

#include "teams/teams.hpp"

namespace atl::kernels {
namespace {

thread_local int rank_of_piece = 0;

class AsyncTeam final : public UnplacedTeam {
 public:
  explicit AsyncTeam(int workers) : UnplacedTeam(workers) {
    for (int rank = workers - 1; rank >= 0; --rank) free_.push_back(rank);
  }

  void loop(std::size_t items, std::size_t grain,
            FunctionRef<void(std::size_t, std::size_t)> piece) override {
    // 641 threads on 32 cores in the paper: 20 for each.
    constexpr std::size_t kThreadsOfWorker = 20;
    const std::size_t even = items / (kThreadsOfWorker * static_cast<std::size_t>(workers()));
    const std::size_t step = std::max<std::size_t>({grain, even, 1});
    std::vector<std::future<void>> pieces;
    for (std::size_t first = 0; first < items; first += step) {
      const std::size_t last = std::min(first + step, items);
      pieces.push_back(std::async(std::launch::async, [=, this] {
        const Rank rank(*this);
        piece(first, last);
      }));
    }
    wait_for(pieces);
  }
  void each(FunctionRef<void(int)> work) override {
    std::vector<std::future<void>> works;
    for (int rank = 0; rank < workers(); ++rank) {
      works.push_back(std::async(std::launch::async, [=] {
        rank_of_piece = rank;
        work(rank);
      }));
    }
    wait_for(works);
  }
  int rank() const override { return rank_of_piece; }
  int ended_threads() const override { return ended_; }

 private:
  // A free rank for the calling thread.
  class Rank {
   public:
    explicit Rank(AsyncTeam& team) : team_(team) {
      std::unique_lock lock(team_.mutex_);
      team_.freed_.wait(lock, [&] { return !team_.free_.empty(); });
      rank_of_piece = team_.free_.back();
      team_.free_.pop_back();
    }
    ~Rank() {
      {
        const std::lock_guard lock(team_.mutex_);
        team_.free_.push_back(rank_of_piece);
      }
      team_.freed_.notify_one();
    }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;

   private:
    AsyncTeam& team_;
  };

  // Waits for all, then throws the first one's exception: a future's destructor waits too.
  void wait_for(std::vector<std::future<void>>& all) {
    ended_ += static_cast<int>(all.size());
    for (std::future<void>& one : all) one.wait();
    for (std::future<void>& one : all) one.get();
  }

  std::mutex mutex_;  // guards `free_`
  std::condition_variable freed_;
  std::vector<int> free_;
  std::atomic<int> ended_{0};
};

}  // namespace

std::unique_ptr<Team> async_team(const TeamOptions& options) {
  return std::make_unique<AsyncTeam>(options.workers);
}

}  // namespace atl::kernels
