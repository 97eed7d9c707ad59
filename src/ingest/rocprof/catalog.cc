// SPDX-License-Identifier: Apache-2.0
#include "ingest/rocprof/catalog.h"

namespace lamina::ingest::rocprof {

template <class T>
void Catalog::Add(Map<T>& map, Key key, T value) {
  const std::unique_lock lock(mutex_);
  map.try_emplace(key, Entry<T>{std::move(value), arrays_.size()});
}

void Catalog::AddSymbols(uint32_t process, size_t since,
                         const std::vector<Definitions::SymbolRow>& rows) {
  const std::unique_lock lock(mutex_);
  for (const auto& [id, offset, symbol] : rows) {
    const auto [it, is_new] = symbols_.try_emplace(
        Key(process, id), Entry<Symbol>{{}, since, offset});
    if (!is_new && offset >= it->second.offset) continue;
    // In an arena of the catalog: a chunk may hold a few bytes of text, for
    // which its own is large.
    it->second = {
        {symbol_texts_.Copy(symbol.name), symbol.registers}, since, offset};
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

void Catalog::Insert(uint32_t process, size_t since, uint64_t offset,
                     Definitions&& definitions) {
  AddSymbols(process, since, definitions.symbols_);
  if (definitions.messages_.empty()) return;
  const std::unique_lock lock(messages_mutex_);
  messages_[process].Add(offset, static_cast<uint32_t>(since),
                         std::move(definitions.messages_), patterns_);
}

void Catalog::Define(uint32_t process, uint64_t offset,
                     Definitions&& definitions) {
  size_t since = 0;
  {
    const std::shared_lock lock(mutex_);
    since = arrays_.size();
  }
  Insert(process, since, offset, std::move(definitions));
}

void Catalog::Finish(uint32_t array, uint64_t offset,
                     Definitions&& definitions) {
  Insert(Array(array).process, size_t{array} + 1, offset,
         std::move(definitions));
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

Catalog::Messages::Messages(Catalog& catalog, uint32_t array)
    : lock_(catalog.messages_mutex_, std::defer_lock),
      patterns_(catalog.patterns_),
      array_(array) {
  std::optional<uint32_t> process;
  {
    const std::shared_lock lock(catalog.mutex_);
    if (array < catalog.arrays_.size())
      process = catalog.arrays_[array].process;
  }
  if (!process) return;
  const auto find = [&] {
    const auto it = catalog.messages_.find(*process);
    table_ = it != catalog.messages_.end() ? &it->second : nullptr;
    return it;
  };
  lock_.lock();
  find();
  while (table_ != nullptr && table_->IsPending(array)) {
    lock_.unlock();
    {
      const std::unique_lock lock(catalog.messages_mutex_);
      find()->second.Settle(array);
    }
    lock_.lock();
  }
}

}  // namespace lamina::ingest::rocprof
