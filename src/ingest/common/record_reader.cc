// SPDX-License-Identifier: Apache-2.0
#include "ingest/common/record_reader.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <vector>

#include "base/parallel.h"
#include "ingest/common/segment_joiner.h"

namespace lamina::ingest {

Status ReadChunks(const std::function<Result<bool>(Chunk&)>& next, int threads,
                  trace::TraceBuilder& builder,
                  const MakeRecordParser& make_parser) {
  SegmentJoiner joiner(&builder);
  std::vector<std::unique_ptr<RecordParser>> parsers;
  for (int i = 0; i < std::max(threads, 1); ++i)
    parsers.push_back(make_parser());
  std::mutex read_mutex;
  bool finished = false;
  std::optional<Error> error;
  RunWorkers(std::max(threads, 1), [&](int worker) {
    RecordParser& parser = *parsers[static_cast<size_t>(worker)];
    Chunk chunk;
    while (true) {
      {
        const std::lock_guard lock(read_mutex);
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

Status ReadRecords(
    json::JsonStream& stream, int threads, trace::TraceBuilder& builder,
    const MakeRecordParser& make_parser,
    const std::function<void(uint64_t done, uint64_t total)>& progress) {
  const auto next = [&](Chunk& chunk) {
    auto more = stream.Next(chunk);
    if (more && *more && progress) {
      progress(stream.source().stored_position(),
               stream.source().stored_size());
    }
    return more;
  };
  return ReadChunks(next, threads, builder, make_parser);
}

}  // namespace lamina::ingest
