// SPDX-License-Identifier: Apache-2.0
#include "mcp/protocol/jobs.h"

#include <algorithm>
#include <thread>

namespace lamina::mcp {
namespace {

constexpr std::chrono::milliseconds kTick(100);

// No exception leaves a thread.
Outcome Guarded(const std::function<Outcome(const Call&)>& run,
                const Call& call) {
  Error error;
  error.kind = ErrorKind::kInternal;
  try {
    return run(call);
  } catch (const std::exception& thrown) {
    error.what = std::string("a fault of lamina: ") + thrown.what();
  }
  return tl::make_unexpected(Problem(std::move(error)));
}

}  // namespace

Jobs::~Jobs() {
  std::unique_lock lock(mutex_);
  for (auto& [key, job] : jobs_) job->stop = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return threads_ == 0; });
}

void Jobs::Run(const std::shared_ptr<Job>& job, const std::string& key,
               const std::function<Outcome(const Call&)>& run, Call call) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return running_ < parallel_ || job->stop; });
  std::shared_ptr<const Outcome> outcome;
  if (!job->stop) {
    ++running_;
    lock.unlock();
    call.stop = &job->stop;
    call.progress = [this, job](const Progress& progress) {
      const std::lock_guard guard(mutex_);
      job->progress = progress;
    };
    outcome = std::make_shared<const Outcome>(Guarded(run, call));
    lock.lock();
    --running_;
  } else {
    outcome = std::make_shared<const Outcome>(
        tl::make_unexpected(Problem(CancelledError())));
  }
  job->outcome = std::move(outcome);
  Keep(key, job);
  --threads_;
  changed_.notify_all();
}

// Errors are not kept: what is missing may come.
void Jobs::Keep(const std::string& key, const std::shared_ptr<Job>& job) {
  const auto found = jobs_.find(key);
  const bool own = found != jobs_.end() && found->second == job;
  if (!own) return;
  if (!job->outcome->has_value()) {
    // Who was told to come again learns of it once.
    if (!job->left || job->stop) {
      jobs_.erase(found);
      return;
    }
  }
  kept_.push_back(key);
  if (kept_.size() <= kKept) return;
  jobs_.erase(kept_.front());
  kept_.pop_front();
}

Jobs::Wait Jobs::Ask(const std::string& key,
                     const std::function<Outcome(const Call&)>& run, Call call,
                     std::chrono::milliseconds limit,
                     const std::function<bool(const Progress&)>& look) {
  const auto end = std::chrono::steady_clock::now() + limit;
  std::unique_lock lock(mutex_);
  std::shared_ptr<Job>& place = jobs_[key];
  if (place == nullptr || place->stop) {
    place = std::make_shared<Job>();
    ++threads_;
    std::thread([this, job = place, key, run,
                 call = std::move(call)]() mutable {
      Run(job, key, run, std::move(call));
    }).detach();
  } else if (place->outcome != nullptr) {
    // Used: it is the latest again.
    std::erase(kept_, key);
    kept_.push_back(key);
  }
  const std::shared_ptr<Job> job = place;
  ++job->waiting;
  Wait wait;
  while (job->outcome == nullptr) {
    changed_.wait_for(lock, kTick, [&] { return job->outcome != nullptr; });
    if (job->outcome != nullptr) break;
    wait.progress = job->progress;
    lock.unlock();
    const bool goes_on = look(wait.progress);
    lock.lock();
    if (!goes_on) {
      wait.end = End::kCancelled;
      break;
    }
    if (std::chrono::steady_clock::now() >= end) {
      wait.end = End::kTimeout;
      break;
    }
  }
  --job->waiting;
  if (wait.end == End::kTimeout && job->outcome == nullptr) job->left = true;
  if (wait.end == End::kCancelled && job->waiting == 0 && !job->left &&
      job->outcome == nullptr) {
    job->stop = true;
    changed_.notify_all();
  }
  if (job->outcome != nullptr && wait.end != End::kCancelled) {
    wait.end = End::kDone;
    wait.outcome = job->outcome;
    // An error that was waited for has been told now.
    if (!job->outcome->has_value()) {
      const auto found = jobs_.find(key);
      if (found != jobs_.end() && found->second == job) {
        jobs_.erase(found);
        std::erase(kept_, key);
      }
    }
  }
  return wait;
}

void Jobs::Forget() {
  const std::lock_guard lock(mutex_);
  for (const std::string& key : kept_) jobs_.erase(key);
  kept_.clear();
}

}  // namespace lamina::mcp
