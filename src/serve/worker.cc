// SPDX-License-Identifier: Apache-2.0
#include "serve/worker.h"

namespace lamina::serve {

Result<std::shared_ptr<Worker>> Worker::Start(std::vector<std::string> words,
                                              std::vector<int> kept,
                                              uint64_t memory_bytes,
                                              const Events& events) {
  auto worker = std::make_shared<Worker>();
  // The thread of the child holds the worker until it has ended.
  LAMINA_ASSIGN(worker->child_,
                Child::Start(
                    std::move(words), std::move(kept), memory_bytes,
                    [worker, events](std::string_view bytes) {
                      return worker->Take(bytes, events);
                    },
                    [worker, events](const std::string& why) {
                      {
                        const std::lock_guard lock(worker->mutex_);
                        worker->ended_ = why;
                        worker->changed_.notify_all();
                      }
                      events.ended(why);
                    }));
  return worker;
}

bool Worker::Take(std::string_view bytes, const Events& events) {
  reader_.Feed(bytes);
  while (auto frame = reader_.Next()) {
    if (frame->kind == 'p') {
      events.progress(frame->body);
    } else if (frame->kind == 'o') {
      events.opened(frame->status, frame->body);
    } else if (frame->kind == 'r') {
      const std::lock_guard lock(mutex_);
      const auto found = asked_.find(frame->id);
      if (found == asked_.end()) continue;
      found->second = Reply{frame->status, std::move(frame->body)};
      changed_.notify_all();
    }
  }
  return !reader_.damaged();
}

std::optional<Worker::Reply> Worker::Ask(char kind, const std::string& body,
                                         const std::function<bool()>& gone,
                                         std::string& why) {
  constexpr auto kLook = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  const uint64_t id = ++last_id_;
  asked_[id];
  lock.unlock();
  child_->Send(FrameText({kind, id, 0, body}));
  lock.lock();
  bool cancelled = false;
  while (!asked_[id] && !ended_) {
    changed_.wait_for(lock, kLook);
    if (cancelled || asked_[id] || !gone) continue;
    lock.unlock();
    if (gone()) {
      cancelled = true;
      child_->Send(FrameText({'c', id, 0, {}}));
    }
    lock.lock();
  }
  std::optional<Reply> reply = std::move(asked_[id]);
  asked_.erase(id);
  if (!reply) why = *ended_;
  return reply;
}

}  // namespace lamina::serve
