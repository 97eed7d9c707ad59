// SPDX-License-Identifier: Apache-2.0
#include "dist/channel.h"

#include "base/parallel.h"

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

}  // namespace lamina::dist
