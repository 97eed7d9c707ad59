// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/text_table.h"

namespace lamina::ingest {

TextTable::TextTable(const Database& database, const DatabaseTable* table,
                     std::string_view id_column, std::string_view text_column,
                     Filler* filler)
    : filler_(*filler) {
  if (table == nullptr || !table->Has(id_column) || !table->Has(text_column))
    return;
  if (table->primary_key == id_column) {
    lookup_ = database.Lookup(table, {text_column}, id_column);
    return;
  }
  Rows rows = database.Scan(table, {id_column, text_column});
  while (rows.Next()) {
    const auto id = rows.Int(0);
    const auto text = rows.Text(1);
    if (id && text) all_.try_emplace(*id, *text);
  }
}

StringId TextTable::Find(std::optional<int64_t> id) {
  if (!id) return {};
  const auto [it, is_new] = found_.try_emplace(*id, StringId());
  if (!is_new) return it->second;
  if (lookup_) {
    lookup_->Restart(*id);
    if (lookup_->Next()) {
      if (const auto text = lookup_->Text(0))
        it->second = filler_.Intern(*text);
    }
  } else if (const auto text = all_.find(*id); text != all_.end()) {
    it->second = filler_.Intern(text->second);
  }
  return it->second;
}

}  // namespace lamina::ingest
