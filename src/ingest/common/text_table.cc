// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/text_table.h"

#include <mutex>

namespace lamina::ingest {

TextTable::TextTable(TableReader& reader, const DatabaseTable* table,
                     std::string_view id_column, std::string_view text_column)
    : table_(table), id_column_(id_column), text_column_(text_column) {
  if (table == nullptr || !table->Has(id_column) || !table->Has(text_column))
    return;
  for (int worker = 0; worker < reader.workers(); ++worker)
    arenas_.push_back(std::make_unique<Arena>());
  bool whole = true;
  texts_ = reader.Index<std::string_view>(
      table, {id_column, text_column},
      [&](int worker, const Row& row, IdTable<std::string_view>& texts) {
        const auto id = row.Int(0);
        const auto text = row.Text(1);
        if (id && text)
          texts.Add(*id, arenas_[static_cast<size_t>(worker)]->Copy(*text));
      },
      &whole);
  partial_ = !whole && table->primary_key == id_column;
}

TextNames::TextNames(const TextTable& table, const Database& database,
                     Filler* filler)
    : table_(table), filler_(*filler), names_(table.texts_.size()) {
  if (table.partial_) {
    lookup_ =
        database.Lookup(table.table_, {table.text_column_}, table.id_column_);
  }
}

StringId TextNames::Find(std::optional<int64_t> id) {
  if (!id) return {};
  const size_t place = table_.texts_.Place(*id);
  if (place == names_.size()) return lookup_ ? LookUp(*id) : StringId();
  StringId& name = names_[place];
  if (!name.valid()) name = filler_.Intern(table_.texts_.at(place));
  return name;
}

StringId TextNames::LookUp(int64_t id) {
  const auto [it, is_new] = found_.try_emplace(id);
  if (!is_new) return it->second;
  lookup_->Restart(id);
  if (lookup_->Next()) {
    if (const auto text = lookup_->Text(0)) it->second = filler_.Intern(*text);
  }
  return it->second;
}

}  // namespace lamina::ingest
