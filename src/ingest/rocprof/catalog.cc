// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/catalog.h"

namespace lamina::ingest::rocprof {
namespace {

// Definitions with their text in an arena of the catalog: those of a chunk may
// be a few bytes, for which its own arena is large.
std::string_view Keep(std::string_view text, Arena& texts) {
  return texts.Copy(text);
}
Symbol Keep(const Symbol& symbol, Arena& texts) {
  return {texts.Copy(symbol.name), symbol.registers};
}

}  // namespace

template <class T>
void Catalog::Add(Map<T>& map, Key key, T value) {
  const std::unique_lock lock(mutex_);
  map.try_emplace(key, Entry<T>{std::move(value), arrays_.size()});
}

template <class T>
void Catalog::AddRows(Map<T>& map, Arena& texts, uint32_t process, size_t since,
                      const std::vector<Definitions::Row<T>>& rows) {
  for (const auto& row : rows) {
    const auto [it, is_new] =
        map.try_emplace(Key(process, row.id), Entry<T>{{}, since, row.offset});
    if (!is_new && row.offset >= it->second.offset) continue;
    it->second = {Keep(row.value, texts), since, row.offset};
  }
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
void Catalog::AddOperations(uint32_t process, size_t kind,
                            std::vector<std::string> names) {
  Add(operations_, {process, static_cast<int64_t>(kind)}, std::move(names));
}
void Catalog::AddArray(RecordArray array) {
  const std::unique_lock lock(mutex_);
  arrays_.push_back(std::move(array));
}

void Catalog::Insert(uint32_t process, size_t since,
                     const Definitions& definitions) {
  {
    const std::unique_lock lock(mutex_);
    AddRows(symbols_, symbol_texts_, process, since, definitions.symbols_);
  }
  const std::unique_lock lock(messages_mutex_);
  AddRows(messages_, message_texts_, process, since, definitions.messages_);
}

void Catalog::Define(uint32_t process, const Definitions& definitions) {
  size_t since = 0;
  {
    const std::shared_lock lock(mutex_);
    since = arrays_.size();
  }
  Insert(process, since, definitions);
}

void Catalog::Finish(uint32_t array, const Definitions& definitions) {
  Insert(Array(array).process, size_t{array} + 1, definitions);
  const std::lock_guard lock(claims_mutex_);
  if (--claims_ == 0) finished_.notify_all();
}

void Catalog::AwaitDefinitions() {
  std::unique_lock lock(claims_mutex_);
  finished_.wait(lock, [&] { return claims_ == 0; });
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

Catalog::Messages::Messages(const Catalog& catalog, uint32_t array)
    : map_(catalog.messages_), array_(array) {
  {
    const std::shared_lock lock(catalog.mutex_);
    if (array < catalog.arrays_.size())
      process_ = catalog.arrays_[array].process;
  }
  lock_ = std::shared_lock(catalog.messages_mutex_);
}

std::string_view Catalog::Messages::Find(int64_t id) const {
  if (!process_) return {};
  const auto it = map_.find(Key(*process_, id));
  return it == map_.end() || it->second.since > array_ ? std::string_view()
                                                       : it->second.value;
}

}  // namespace lamina::ingest::rocprof
