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

#include "base/status.h"

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

// How the program finds MPI: as a plug-in beside it, so that it starts where no
// libmpi is.

// Raised when Channel changes.
inline constexpr int kMpiPluginInterface = 1;
inline constexpr const char* kMpiPluginFile = "lamina_mpi.so";
// The plug-in defines: extern "C" Channel* LaminaOpenMpi(int interface); null
// for an interface that it does not have.
inline constexpr const char* kMpiPluginEntry = "LaminaOpenMpi";

// Loads the plug-in and joins the MPI job. Errors: no plug-in beside the
// program or in ../lib/lamina, no MPI, a plug-in of another version.
Result<std::unique_ptr<Channel>> OpenMpiChannel();

}  // namespace lamina::dist
