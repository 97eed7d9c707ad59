// SPDX-License-Identifier: Apache-2.0
#include "questions/open_traces.h"

#include <filesystem>
#include <malloc.h>

#include "base/opened.h"
#include "base/process_memory.h"

namespace lamina::questions {
namespace {

// One name for one file: as it was given where its open file is read, whatever
// the name leads to by now.
std::string RealName(const std::string& path) {
  if (IsReadInstead(path)) return path;
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

}  // namespace

Result<std::shared_ptr<engine::Session>> OpenTraces::Open(
    const std::string& path, const Opening& how) {
  return EndedByStop(how.stop, [&] { return Find(path, how); });
}

Result<std::shared_ptr<engine::Session>> OpenTraces::Find(
    const std::string& path, const Opening& how) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    auto& place = entries_[RealName(path)];
    if (place == nullptr) place = std::make_shared<Entry>();
    entry = place;
    entry->used = ++clock_;
  }
  const std::lock_guard opening(entry->opening);
  if (how.captures && *how.captures != entry->captures.value_or(captures_)) {
    const std::lock_guard lock(mutex_);
    entry->captures = how.captures;
    entry->session = nullptr;
    ++entry->changes;
  }
  const uint64_t now = StateOfInput(path);
  if (now == 0) return Fail(InputError(path, "is not there any more"));
  std::shared_ptr<engine::Session> session;
  {
    const std::lock_guard lock(mutex_);
    if (entry->session != nullptr && entry->of == now)
      session = entry->session;
    else
      entry->session = nullptr;
  }
  if (session != nullptr) return session;
  Trim();
  engine::OpenOptions open;
  open.threads = threads_;
  open.progress = how.progress;
  open.stop = how.stop;
  open.captures = entry->captures.value_or(captures_);
  LAMINA_ASSIGN(session, engine::Session::Open(path, open));
  const std::lock_guard lock(mutex_);
  entry->session = session;
  entry->of = now;
  return session;
}

bool OpenTraces::Trim() {
  bool any = false;
  while (MemoryOfThisProcess().resident_bytes > memory_limit_) {
    std::shared_ptr<engine::Session> oldest;
    {
      const std::lock_guard lock(mutex_);
      auto found = entries_.end();
      for (auto it = entries_.begin(); it != entries_.end(); ++it) {
        const auto& session = it->second->session;
        if (session == nullptr || session.use_count() > 1) continue;
        if (found == entries_.end() || it->second->used < found->second->used)
          found = it;
      }
      if (found == entries_.end()) return any;
      oldest = std::move(found->second->session);
      found->second->session = nullptr;
    }
    oldest.reset();
    ::malloc_trim(0);
    any = true;
  }
  return any;
}

uint64_t OpenTraces::Changes(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(RealName(path));
  return found == entries_.end() ? 0 : found->second->changes;
}

bool OpenTraces::IsOpen(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(RealName(path));
  return found != entries_.end() && found->second->session != nullptr;
}

}  // namespace lamina::questions
