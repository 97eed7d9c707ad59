// SPDX-License-Identifier: Apache-2.0
//
// What the processes of one run need from each other. Everything else in this
// folder is written against it, so one process with threads and a thousand
// under MPI run the same code.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace lamina::dist {

class Channel {
 public:
  virtual ~Channel() = default;

  virtual int number() const = 0;  // of this process, from 0
  virtual int size() const = 0;

  // Hands the items [0, count) out one by one over all processes and `threads`
  // threads of each: files differ in size, so nobody knows beforehand who will
  // be free. `work(i)` runs in one of them.
  virtual void RunQueue(size_t count, int threads,
                        const std::function<void(size_t i)>& work) = 0;

  // to[i] goes to process i; returns what each sent to this one. All processes
  // call it together.
  virtual std::vector<std::string> Exchange(std::vector<std::string> to) = 0;
};

// This process alone.
std::unique_ptr<Channel> MakeLocalChannel();

// The same text to everyone: that of process 0.
std::string Broadcast(Channel& channel, const std::string& text);
// What every process has, in the order of their numbers, everywhere.
std::vector<std::string> Share(Channel& channel, const std::string& text);

}  // namespace lamina::dist
