// SPDX-License-Identifier: Apache-2.0

#include "ingest/rocprof/catalog.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/decimal.h"
#include "base/json/scan.h"
#include "base/json/tokens.h"
#include "base/key_index.h"

namespace lamina::ingest::rocprof {

namespace {

enum Member : size_t {
  kKernelId,
  kRegisters,
  kFirstName,
  kLastName = kFirstName + kSymbolNames.size() - 1,
  kKey,
  kValue,
};
constexpr KeyIndex<7> kMembers(std::array<std::string_view, 7>{
    "kernel_id", kSymbolRegisters, kSymbolNames[0], kSymbolNames[1],
    kSymbolNames[2], "key", "value"});

// Adds the text of a raw JSON string.
template <class Add>
void Decode(std::string_view raw, Add&& add) {
  if (raw.find('\\') == std::string_view::npos) {
    add(raw);
  } else {
    add(json::DecodeString(raw));
  }
}

}  // namespace

bool Definition::Read(const json::Tokens& tokens, size_t& token) {
  *this = Definition();
  return json::WalkObject(tokens, token, [&](std::string_view key, size_t& at) {
    const size_t member = kMembers.Find(key);
    if (member == kMembers.kCount) return json::SkipValue(tokens, at);
    RawValue value;
    if (!ReadValue(tokens, at, value)) return false;
    const std::string_view text =
        value.kind == '"' ? value.text : std::string_view();
    switch (member) {
      case kKernelId:
      case kKey:
        id_ = ParseInt(value.text);
        break;
      case kRegisters:
        registers_ = ParseInt(value.text).value_or(trace::kNoInt);
        break;
      case kValue:
        text_ = text;
        break;
      default:
        names_[member - kFirstName] = text;
    }
    return true;
  });
}

void Definition::AddTo(Definitions& definitions, Domain domain,
                       uint64_t offset) const {
  if (!id_) return;
  if (domain == Domain::kMessages) {
    Decode(text_,
           [&](std::string_view text) { definitions.AddMessage(*id_, text); });
    return;
  }
  for (const std::string_view raw : names_) {
    if (raw.empty()) continue;
    Decode(raw, [&](std::string_view name) {
      definitions.AddSymbol(*id_, offset, {name, registers_});
    });
    return;
  }
}

namespace {

bool IdLess(const Message& a, const Message& b) { return a.id < b.id; }

// Sorts messages by id and keeps the first of equal ones.
void SortUnique(PodVector<Message>& rows) {
  const auto not_above = [](const Message& a, const Message& b) {
    return a.id >= b.id;
  };
  if (std::adjacent_find(rows.begin(), rows.end(), not_above) == rows.end())
    return;
  std::stable_sort(rows.begin(), rows.end(), IdLess);
  const auto* const end = std::unique(
      rows.begin(), rows.end(),
      [](const Message& a, const Message& b) { return a.id == b.id; });
  rows.resize(static_cast<size_t>(end - rows.begin()));
}

}  // namespace

void MessageTable::Add(uint64_t offset, uint32_t since, MessageRows&& part,
                       StringPool& patterns) {
  if (part.empty()) return;
  std::vector<StringId> ids(part.patterns_.size());
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] =
        patterns.Intern(part.patterns_[StringId(static_cast<uint32_t>(i))]);
  PodVector<Message> rows = std::move(part.rows_);
  for (Message& row : rows) {
    row.pattern = ids[row.pattern.value];
    row.since = since;
  }
  rows.shrink_to_fit();
  pending_.emplace(offset, std::move(rows));
}

void MessageTable::Settle(uint32_t array) {
  PodVector<Message> more;
  while (IsPending(array)) {
    const auto first = pending_.begin();
    more.append(first->second.data(), first->second.size());
    pending_.erase(first);
  }
  SortUnique(more);
  if (rows_.empty()) {
    rows_ = std::move(more);
    return;
  }
  // Those behind all that are there, and the rest.
  const Message* const behind =
      std::upper_bound(more.begin(), more.end(), rows_.back(), IdLess);
  for (const Message* row = more.begin(); row != behind; ++row) {
    if (Place(row->id, 0) == rows_.size()) others_.try_emplace(row->id, *row);
  }
  rows_.append(behind, static_cast<size_t>(more.end() - behind));
}

const Message* MessageTable::Find(uint32_t array, int64_t id,
                                  size_t& hint) const {
  const Message* found = nullptr;
  if (const size_t place = Place(id, hint); place < rows_.size()) {
    found = &rows_[place];
    hint = place;
  } else if (const auto it = others_.find(id); it != others_.end()) {
    found = &it->second;
  }
  return found != nullptr && found->since <= array ? found : nullptr;
}

// Where a message stands in rows_; their number when it does not.
size_t MessageTable::Place(int64_t id, size_t hint) const {
  // Around the last one: a range ends after those in it.
  constexpr size_t kNear = 8;
  const size_t size = rows_.size();
  size_t begin = std::min(hint, size);
  size_t end = size;
  if (begin < size && rows_[begin].id <= id) {
    if (size - begin > kNear && rows_[begin + kNear].id > id)
      end = begin + kNear;
  } else {
    end = begin;
    begin = end > kNear && rows_[end - kNear].id <= id ? end - kNear : 0;
  }
  const Message* const at = std::lower_bound(
      rows_.begin() + begin, rows_.begin() + end, id,
      [](const Message& row, int64_t key) { return row.id < key; });
  return at != rows_.end() && at->id == id
             ? static_cast<size_t>(at - rows_.begin())
             : size;
}

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
