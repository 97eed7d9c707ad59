// SPDX-License-Identifier: Apache-2.0
#include "base/json/stream.h"

namespace lamina::json {

JsonStream::JsonStream(std::unique_ptr<ByteSource> source, Router* router,
                       Options options)
    : source_(std::move(source)),
      router_(*router),
      window_(source_.get()),
      document_(&window_, router),
      cutter_(&window_, router, options) {}

Result<bool> JsonStream::Next(Chunk& chunk) {
  chunk.text = {};
  while (where_ != Where::kDone) {
    if (where_ == Where::kDocument) {
      LAMINA_TRY(WalkDocument());
      continue;
    }
    LAMINA_ASSIGN(const bool any, CutRecords(chunk));
    if (any) return true;
  }
  return false;
}

Status JsonStream::WalkDocument() {
  LAMINA_ASSIGN(const bool records, document_.NextArray());
  if (records) {
    cutter_.Start();
    where_ = Where::kRecords;
    return {};
  }
  where_ = Where::kDone;
  if (const auto damage = source_->damage())
    router_.Lost(damage->what, damage->offset, 0);
  return {};
}

Result<bool> JsonStream::CutRecords(Chunk& chunk) {
  LAMINA_ASSIGN(const bool any, cutter_.Next(chunk));
  if (any) {
    chunk.array = arrays_;
    chunk.sequence = sequence_++;
  }
  switch (cutter_.place()) {
    case RecordCutter::Place::kInside:
      break;
    case RecordCutter::Place::kBehind:
      document_.LeaveArray();
      ++arrays_;
      where_ = Where::kDocument;
      break;
    case RecordCutter::Place::kInputEnded:
      document_.Abandon();
      where_ = Where::kDocument;
      break;
  }
  return any;
}

}  // namespace lamina::json
