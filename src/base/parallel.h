// SPDX-License-Identifier: Apache-2.0
//
// Threads for data parallel work. Results must not depend on the number of
// threads: a task writes to its own slot and the caller joins slots in order.
#pragma once

#include <cstddef>
#include <functional>

namespace lamina {

// Threads to use when the user names none: the cores this process may run on.
int DefaultThreads();

// Runs `work(worker)`, which must not throw, on `threads` threads that share
// what there is to do (the caller is worker 0); fewer where there is no room.
// Workers may wait for each other, so a stop (base/stop.h) does not reach them.
void RunWorkers(int threads, const std::function<void(int worker)>& work);

// Calls `work(i)` for every i in [0, count), in any order, on `threads`
// threads; items are handed out one by one, so uneven items balance. A stop
// (base/stop.h) is looked at before each item: items must not wait for others.
void ParallelFor(int threads, size_t count,
                 const std::function<void(size_t i)>& work);

// Calls `work(begin, end, part)` for contiguous parts of [0, count). The cut
// depends on `count` and `grain` only, never on the thread count.
void ParallelRanges(
    int threads, size_t count, size_t grain,
    const std::function<void(size_t begin, size_t end, size_t part)>& work);

}  // namespace lamina
