// SPDX-License-Identifier: Apache-2.0
//
// Tables in the structs of Arrow's C interfaces. Every exported struct owns
// what it points to, children and dictionaries too: a consumer may take one of
// them out of its parent and keep it longer.
//
// Why it is longer than 250 lines: schema, array and stream are one contract.
#include "lamina/arrow.h"

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "api/guard.h"
#include "base/escape.h"
#include "base/status.h"
#include "table/text_codes.h"

namespace lamina {
namespace {

// A buffer without elements still has an address.
constexpr int64_t kNothing[1] = {0};

template <class T>
const void* AddressOf(std::span<const T> items) {
  return items.empty() ? static_cast<const void*>(kNothing) : items.data();
}

const char* FormatOf(ColumnType type) {
  switch (type) {
    case ColumnType::kInt:
    case ColumnType::kTime:
      return "l";
    case ColumnType::kReal:
      return "g";
    case ColumnType::kBool:
      return "b";
    case ColumnType::kText:
      return "i";  // codes of a dictionary
  }
  return "n";
}

// Key and value as the interface encodes them: counts and lengths as int32.
std::string Metadata(const std::string& key, const std::string& value) {
  std::string out;
  const auto add = [&](int32_t number) {
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    out.append(bytes, sizeof number);
  };
  add(1);
  for (const std::string& text : {key, value}) {
    add(static_cast<int32_t>(text.size()));
    out += text;
  }
  return out;
}

// What an exported schema points to.
struct SchemaOwner {
  std::string name;
  std::string metadata;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  std::unique_ptr<ArrowSchema> dictionary;
};

void ReleaseSchema(ArrowSchema* schema) {
  auto* const owner = static_cast<SchemaOwner*>(schema->private_data);
  for (ArrowSchema& child : owner->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (owner->dictionary != nullptr && owner->dictionary->release != nullptr)
    owner->dictionary->release(owner->dictionary.get());
  schema->release = nullptr;
  delete owner;
}

ArrowSchema MakeSchema(const char* format, std::unique_ptr<SchemaOwner> owner) {
  ArrowSchema out{};
  out.format = format;
  out.name = owner->name.c_str();
  out.metadata = owner->metadata.empty() ? nullptr : owner->metadata.data();
  out.flags = ARROW_FLAG_NULLABLE;
  for (ArrowSchema& child : owner->children) owner->pointers.push_back(&child);
  out.n_children = static_cast<int64_t>(owner->pointers.size());
  out.children = owner->pointers.empty() ? nullptr : owner->pointers.data();
  out.dictionary = owner->dictionary.get();
  out.release = &ReleaseSchema;
  out.private_data = owner.release();
  return out;
}

ArrowSchema SchemaOf(const Column& column) {
  auto owner = std::make_unique<SchemaOwner>();
  owner->name = RepairUtf8(NameInNs(column));
  if (!column.doc.empty())
    owner->metadata = Metadata("lamina.doc", RepairUtf8(column.doc));
  if (column.type == ColumnType::kText) {
    owner->dictionary = std::make_unique<ArrowSchema>(
        MakeSchema("U", std::make_unique<SchemaOwner>()));
  }
  return MakeSchema(FormatOf(column.type), std::move(owner));
}

ArrowSchema SchemaOf(const Schema& schema) {
  auto owner = std::make_unique<SchemaOwner>();
  if (!schema.doc.empty())
    owner->metadata = Metadata("lamina.doc", RepairUtf8(schema.doc));
  owner->children.reserve(schema.columns.size());
  for (const Column& column : schema.columns)
    owner->children.push_back(SchemaOf(column));
  ArrowSchema out = MakeSchema("+s", std::move(owner));
  out.flags = 0;
  return out;
}

// What an exported array points to; columns of numbers lie in the table.
struct ArrayOwner {
  std::shared_ptr<const Table> table;
  std::vector<int32_t> codes;
  std::vector<uint64_t> bits;
  std::vector<int64_t> offsets;
  std::string bytes;
  std::array<const void*, 3> buffers{};
  std::vector<ArrowArray> children;
  std::vector<ArrowArray*> pointers;
  std::unique_ptr<ArrowArray> dictionary;
};

void ReleaseArray(ArrowArray* array) {
  auto* const owner = static_cast<ArrayOwner*>(array->private_data);
  for (ArrowArray& child : owner->children) {
    if (child.release != nullptr) child.release(&child);
  }
  if (owner->dictionary != nullptr && owner->dictionary->release != nullptr)
    owner->dictionary->release(owner->dictionary.get());
  array->release = nullptr;
  delete owner;
}

ArrowArray MakeArray(size_t length, int64_t nulls, int64_t buffers,
                     std::unique_ptr<ArrayOwner> owner) {
  ArrowArray out{};
  out.length = static_cast<int64_t>(length);
  out.null_count = nulls;
  out.n_buffers = buffers;
  out.buffers = owner->buffers.data();
  for (ArrowArray& child : owner->children) owner->pointers.push_back(&child);
  out.n_children = static_cast<int64_t>(owner->pointers.size());
  out.children = owner->pointers.empty() ? nullptr : owner->pointers.data();
  out.dictionary = owner->dictionary.get();
  out.release = &ReleaseArray;
  out.private_data = owner.release();
  return out;
}

int64_t CountNulls(const ColumnView& view, size_t rows) {
  if (view.present.empty()) return 0;
  int64_t present = 0;
  for (size_t word = 0; word * 64 < rows; ++word) {
    uint64_t bits = view.present[word];
    if (rows - word * 64 < 64) bits &= (uint64_t{1} << rows % 64) - 1;
    present += std::popcount(bits);
  }
  return static_cast<int64_t>(rows) - present;
}

// Texts as large_utf8: their ends, and all bytes behind each other.
ArrowArray DictionaryOf(const Table& table,
                        const std::vector<uint32_t>& texts) {
  auto owner = std::make_unique<ArrayOwner>();
  owner->offsets.reserve(texts.size() + 1);
  owner->offsets.push_back(0);
  for (const uint32_t id : texts) {
    const std::string_view text = table.Text(id);
    if (IsValidUtf8(text)) {
      owner->bytes += text;
    } else {
      owner->bytes += RepairUtf8(text);
    }
    owner->offsets.push_back(static_cast<int64_t>(owner->bytes.size()));
  }
  owner->buffers = {nullptr, owner->offsets.data(), owner->bytes.data()};
  return MakeArray(texts.size(), 0, 3, std::move(owner));
}

ArrowArray ArrayOf(const std::shared_ptr<const Table>& table, size_t column) {
  const size_t rows = table->rows();
  const ColumnView view = table->View(column);
  auto owner = std::make_unique<ArrayOwner>();
  owner->table = table;
  if (!view.present.empty()) owner->buffers[0] = view.present.data();
  switch (table->schema().columns[column].type) {
    case ColumnType::kInt:
    case ColumnType::kTime:
      owner->buffers[1] = AddressOf(view.ints);
      break;
    case ColumnType::kReal:
      owner->buffers[1] = AddressOf(view.reals);
      break;
    case ColumnType::kBool:
      owner->bits.resize(rows / 64 + 1);
      for (size_t row = 0; row < rows; ++row) {
        if (view.ints[row] != 0)
          owner->bits[row / 64] |= uint64_t{1} << row % 64;
      }
      owner->buffers[1] = owner->bits.data();
      break;
    case ColumnType::kText: {
      TextCodes found = CodesOf(*table, column);
      // A null is said by its bit; its code must still be one.
      for (int32_t& code : found.codes) code = code < 0 ? 0 : code;
      owner->dictionary =
          std::make_unique<ArrowArray>(DictionaryOf(*table, found.texts));
      owner->codes = std::move(found.codes);
      owner->buffers[1] = AddressOf(std::span<const int32_t>(owner->codes));
      break;
    }
  }
  return MakeArray(rows, CountNulls(view, rows), 2, std::move(owner));
}

ArrowArray ArrayOf(const std::shared_ptr<const Table>& table) {
  auto owner = std::make_unique<ArrayOwner>();
  owner->children.reserve(table->columns());
  for (size_t c = 0; c < table->columns(); ++c)
    owner->children.push_back(ArrayOf(table, c));
  return MakeArray(table->rows(), 0, 1, std::move(owner));
}

struct StreamOwner {
  std::shared_ptr<const Table> table;
  bool given = false;
  std::string error;
};

// Status as the interface says it: an errno, and a text of the stream.
int Told(StreamOwner& owner, const Status& status) {
  if (status) return 0;
  owner.error = status.error().ToString();
  return status.error().kind == ErrorKind::kLimit ? ENOMEM : EINVAL;
}

int StreamSchema(ArrowArrayStream* stream, ArrowSchema* out) {
  auto& owner = *static_cast<StreamOwner*>(stream->private_data);
  return Told(owner, ExportSchema(owner.table->schema(), out));
}

int StreamNext(ArrowArrayStream* stream, ArrowArray* out) {
  auto& owner = *static_cast<StreamOwner*>(stream->private_data);
  if (owner.given) {
    *out = ArrowArray{};  // released: the end
    return 0;
  }
  const int told = Told(owner, ExportArray(owner.table, out));
  owner.given = told == 0;
  return told;
}

const char* StreamError(ArrowArrayStream* stream) {
  const auto& owner = *static_cast<StreamOwner*>(stream->private_data);
  return owner.error.empty() ? nullptr : owner.error.c_str();
}

void ReleaseStream(ArrowArrayStream* stream) {
  delete static_cast<StreamOwner*>(stream->private_data);
  stream->release = nullptr;
}

Status NotNull(bool given) {
  if (given) return {};
  return Fail(UsageError("a null pointer is given to an export of Arrow"));
}

}  // namespace

Status ExportSchema(const Schema& schema, ArrowSchema* out) {
  LAMINA_TRY(NotNull(out != nullptr));
  return api::Guarded(std::nullopt, [&]() -> Status {
    *out = SchemaOf(schema);
    return {};
  });
}

Status ExportArray(std::shared_ptr<const Table> table, ArrowArray* out) {
  LAMINA_TRY(NotNull(out != nullptr && table != nullptr));
  return api::Guarded(std::nullopt, [&]() -> Status {
    *out = ArrayOf(table);
    return {};
  });
}

Status ExportStream(std::shared_ptr<const Table> table, ArrowArrayStream* out) {
  LAMINA_TRY(NotNull(out != nullptr && table != nullptr));
  return api::Guarded(std::nullopt, [&]() -> Status {
    *out = ArrowArrayStream{&StreamSchema, &StreamNext, &StreamError,
                            &ReleaseStream,
                            new StreamOwner{std::move(table), false, {}}};
    return {};
  });
}

}  // namespace lamina
