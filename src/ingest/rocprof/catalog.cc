// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/catalog.h"

#include <mutex>

namespace lamina::ingest::rocprof {

template <class T>
void Catalog::Add(Map<T>& map, Key key, T value) {
  const std::unique_lock lock(mutex_);
  map.try_emplace(key, Entry<T>{std::move(value), arrays_.size()});
}

template <class T>
const T* Catalog::Seen(const Map<T>& map, uint32_t array, int64_t id) const {
  if (array >= arrays_.size()) return nullptr;
  const auto it = map.find(Key(arrays_[array].process, id));
  return it == map.end() || it->second.since > array ? nullptr
                                                     : &it->second.value;
}

template <class T>
std::optional<T> Catalog::Find(const Map<T>& map, uint32_t array,
                               int64_t id) const {
  const std::shared_lock lock(mutex_);
  const T* found = Seen(map, array, id);
  return found != nullptr ? std::optional<T>(*found) : std::nullopt;
}

void Catalog::AddAgent(uint32_t process, int64_t handle, const Agent& agent) {
  Add(agents_, {process, handle}, agent);
}
void Catalog::AddSymbol(uint32_t process, int64_t id, Symbol symbol) {
  Add(symbols_, {process, id}, std::move(symbol));
}
void Catalog::AddOperations(uint32_t process, size_t kind,
                            std::vector<std::string> names) {
  Add(operations_, {process, static_cast<int64_t>(kind)}, std::move(names));
}
void Catalog::AddMessage(uint32_t process, int64_t id, std::string text) {
  Add(messages_, {process, id}, std::move(text));
}
void Catalog::AddArray(RecordArray array) {
  const std::unique_lock lock(mutex_);
  arrays_.push_back(std::move(array));
}

RecordArray Catalog::Array(uint32_t array) const {
  const std::shared_lock lock(mutex_);
  return array < arrays_.size() ? arrays_[array] : RecordArray();
}

std::optional<Agent> Catalog::FindAgent(uint32_t array, int64_t handle) const {
  return Find(agents_, array, handle);
}
std::optional<Symbol> Catalog::FindSymbol(uint32_t array, int64_t id) const {
  return Find(symbols_, array, id);
}
std::string Catalog::Operation(uint32_t array, int64_t kind,
                               int64_t operation) const {
  const std::shared_lock lock(mutex_);
  // One name is copied, not the list: there may be as many as look-ups.
  const auto* names = Seen(operations_, array, kind);
  return names != nullptr && operation >= 0 &&
                 operation < static_cast<int64_t>(names->size())
             ? (*names)[static_cast<size_t>(operation)]
             : std::string();
}
std::string Catalog::Message(uint32_t array, int64_t id) const {
  return Find(messages_, array, id).value_or(std::string());
}

}  // namespace lamina::ingest::rocprof
