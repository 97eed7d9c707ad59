// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/record_reader.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "ingest/common/segment_joiner.h"

namespace lamina::ingest {

Status ReadChunks(const std::function<Result<bool>(Chunk&)>& next,
                  const ReadOptions& options, trace::TraceBuilder& builder,
                  const MakeRecordParser& make_parser) {
  const int threads = std::max(options.threads, 1);
  SegmentJoiner joiner(&builder);
  std::vector<std::unique_ptr<RecordParser>> parsers;
  for (int i = 0; i < threads; ++i) parsers.push_back(make_parser());
  std::mutex read_mutex;
  bool finished = false;
  std::optional<Error> error;
  RunWorkers(threads, [&](int worker) {
    RecordParser& parser = *parsers[static_cast<size_t>(worker)];
    Chunk chunk;
    while (true) {
      {
        const std::lock_guard lock(read_mutex);
        finished |= options.Stopped();
        if (finished) return;
        auto more = next(chunk);
        if (!more || !*more) {
          finished = true;
          if (!more) error = std::move(more).error();
          return;
        }
        parser.Claim(chunk);
      }
      auto segment = joiner.Take(worker, parser.names());
      parser.Parse(chunk, *segment);
      segment->Seal();
      joiner.Add(chunk.sequence, worker, std::move(segment));
    }
  });
  if (error) return Fail(*error);
  return {};
}

Status ReadRecords(json::JsonStream& stream, const ReadOptions& options,
                   trace::TraceBuilder& builder,
                   const MakeRecordParser& make_parser) {
  const auto next = [&](Chunk& chunk) {
    auto more = stream.Next(chunk);
    if (more && *more && options.progress) {
      options.progress(stream.source().stored_position(),
                       stream.source().stored_size());
    }
    return more;
  };
  return ReadChunks(next, options, builder, make_parser);
}

}  // namespace lamina::ingest
