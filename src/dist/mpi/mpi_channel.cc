// SPDX-License-Identifier: Apache-2.0
//
// Processes of one MPI job (MPI-3.1). The only file that knows mpi.h; the
// program loads it when --engine mpi asks for it.
//
// Blocking calls of most MPIs spin, which takes a core from the readers. So
// whatever may take long is polled with pauses.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mpi.h>
#include <mutex>
#include <thread>
#include <vector>

#include "dist/channel.h"

namespace lamina::dist {
namespace {

constexpr int kAsk = 1;
constexpr int kGive = 2;
// Bytes that a process sends or receives at once: counts and places are int in
// MPI, and buffers should be small.
constexpr uint64_t kRoundBytes = uint64_t{4} << 20;

void Pause() { std::this_thread::sleep_for(std::chrono::microseconds(200)); }

void Wait(MPI_Request& request) {
  int done = 0;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), done == 0) Pause();
}

class MpiChannel : public Channel {
 public:
  MpiChannel() {
    MPI_Comm_rank(MPI_COMM_WORLD, &number_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiChannel() override { MPI_Finalize(); }

  int number() const override { return number_; }
  int size() const override { return size_; }

  void RunQueue(size_t count, int threads,
                const std::function<void(size_t i)>& work) override {
    std::atomic<uint64_t> next = 0;  // on process 0
    std::thread server;
    if (number_ == 0 && size_ > 1)
      server = std::thread([&] { Serve(next, count); });
    std::mutex mutex;
    bool empty = false;
    const auto take = [&]() -> uint64_t {
      if (number_ == 0) return next.fetch_add(1);
      const std::lock_guard lock(mutex);
      if (empty) return count;
      const uint64_t item = Ask();
      empty = item >= count;
      return item;
    };
    const auto run = [&] {
      for (uint64_t i = take(); i < count; i = take()) work(i);
    };
    std::vector<std::thread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(run);
    run();
    for (std::thread& t : others) t.join();
    if (server.joinable()) server.join();
  }

  std::vector<std::string> Exchange(std::vector<std::string> to) override {
    MPI_Request all_here;
    MPI_Ibarrier(MPI_COMM_WORLD, &all_here);
    Wait(all_here);
    const auto n = static_cast<size_t>(size_);
    std::vector<uint64_t> sizes(n), from_sizes(n);
    for (size_t i = 0; i < n; ++i) sizes[i] = to[i].size();
    MPI_Alltoall(sizes.data(), 1, MPI_UINT64_T, from_sizes.data(), 1,
                 MPI_UINT64_T, MPI_COMM_WORLD);
    std::vector<std::string> from(n);
    uint64_t longest = 0;
    for (size_t i = 0; i < n; ++i) {
      from[i].reserve(from_sizes[i]);
      longest = std::max(longest, sizes[i]);
    }
    const uint64_t piece = std::max<uint64_t>(kRoundBytes / n, 1);
    uint64_t rounds = (longest + piece - 1) / piece;
    MPI_Allreduce(MPI_IN_PLACE, &rounds, 1, MPI_UINT64_T, MPI_MAX,
                  MPI_COMM_WORLD);
    for (uint64_t round = 0; round < rounds; ++round)
      ExchangeRound(to, from_sizes, round * piece, piece, from);
    return from;
  }

 private:
  // Bytes [start, start + piece) of every text.
  void ExchangeRound(const std::vector<std::string>& to,
                     const std::vector<uint64_t>& from_sizes, uint64_t start,
                     uint64_t piece, std::vector<std::string>& from) {
    const size_t n = to.size();
    const auto part = [&](uint64_t size) {
      return static_cast<int>(std::min(size - std::min(size, start), piece));
    };
    std::vector<int> counts(n), places(n), from_counts(n), from_places(n);
    std::string out;
    int in_size = 0;
    for (size_t i = 0; i < n; ++i) {
      counts[i] = part(to[i].size());
      places[i] = static_cast<int>(out.size());
      if (counts[i] > 0)
        out.append(to[i], start, static_cast<size_t>(counts[i]));
      from_counts[i] = part(from_sizes[i]);
      from_places[i] = in_size;
      in_size += from_counts[i];
    }
    std::string in(static_cast<size_t>(in_size), '\0');
    MPI_Alltoallv(out.data(), counts.data(), places.data(), MPI_BYTE, in.data(),
                  from_counts.data(), from_places.data(), MPI_BYTE,
                  MPI_COMM_WORLD);
    for (size_t i = 0; i < n; ++i) {
      from[i].append(in, static_cast<size_t>(from_places[i]),
                     static_cast<size_t>(from_counts[i]));
    }
  }

  // Gives numbers to the other processes until each knows that there are no
  // more. Meanwhile no other thread of process 0 calls MPI.
  void Serve(std::atomic<uint64_t>& next, uint64_t count) {
    for (int running = size_ - 1; running > 0;) {
      int asked = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, kAsk, MPI_COMM_WORLD, &asked, &status);
      if (asked == 0) {
        Pause();
        continue;
      }
      MPI_Recv(nullptr, 0, MPI_BYTE, status.MPI_SOURCE, kAsk, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      const uint64_t item = next.fetch_add(1);
      if (item >= count) --running;
      MPI_Send(&item, 1, MPI_UINT64_T, status.MPI_SOURCE, kGive,
               MPI_COMM_WORLD);
    }
  }

  static uint64_t Ask() {
    uint64_t item = 0;
    MPI_Request given;
    MPI_Irecv(&item, 1, MPI_UINT64_T, 0, kGive, MPI_COMM_WORLD, &given);
    MPI_Send(nullptr, 0, MPI_BYTE, 0, kAsk, MPI_COMM_WORLD);
    Wait(given);
    return item;
  }

  int number_ = 0;
  int size_ = 1;
};

}  // namespace
}  // namespace lamina::dist

// All else of the plug-in is hidden.
extern "C" [[gnu::visibility("default")]] lamina::dist::Channel* LaminaOpenMpi(
    int interface) {
  if (interface != lamina::dist::kMpiPluginInterface) return nullptr;
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED) {
    std::fprintf(stderr, "lamina: error: this MPI allows no threads\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return new lamina::dist::MpiChannel();
}
