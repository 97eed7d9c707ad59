// SPDX-License-Identifier: Apache-2.0

#include "dist/channel.h"

#include <string>

#include "base/parallel.h"
#include "base/plugin.h"

namespace lamina::dist {

namespace {

class LocalChannel : public Channel {
 public:
  int number() const override { return 0; }
  int size() const override { return 1; }
  void RunQueue(size_t count, int threads,
                const std::function<void(size_t i)>& work) override {
    ParallelFor(threads, count, work);
  }
  std::vector<std::string> Exchange(std::vector<std::string> to) override {
    return to;
  }
};

}  // namespace

std::unique_ptr<Channel> MakeLocalChannel() {
  return std::make_unique<LocalChannel>();
}

std::string Broadcast(Channel& channel, const std::string& text) {
  std::vector<std::string> to(static_cast<size_t>(channel.size()));
  if (channel.number() == 0) {
    for (std::string& t : to) t = text;
  }
  return std::move(channel.Exchange(std::move(to)).front());
}

std::vector<std::string> Share(Channel& channel, const std::string& text) {
  return channel.Exchange(
      std::vector<std::string>(static_cast<size_t>(channel.size()), text));
}

Result<std::unique_ptr<Channel>> OpenMpiChannel() {
  // Parts of Open MPI look for its symbols among those of everyone.
  const auto entry =
      LoadPlugin(kMpiPluginFile, kMpiPluginEntry, "lamina-mpi", true);
  if (!entry) {
    return Fail(UsageError("⟨engine⟩ mpi: " + entry.error(),
                           "build lamina where MPI is installed "
                           "(libopenmpi-dev), or use ⟨engine⟩ files"));
  }
  using Entry = Channel* (*)(int);
  std::unique_ptr<Channel> channel(
      reinterpret_cast<Entry>(*entry)(kMpiPluginInterface));
  if (channel == nullptr) {
    return Fail(UsageError(std::string("⟨engine⟩ mpi: ") + kMpiPluginFile +
                               " is of another version",
                           "build the program and the plug-in together"));
  }
  return channel;
}

}  // namespace lamina::dist
