// SPDX-License-Identifier: Apache-2.0
//
// What answers the questions, one file each.
#pragma once

#include <functional>

#include "questions/answer.h"
#include "questions/asker.h"
#include "questions/description.h"

namespace lamina::questions {

// Answers once the fields that were described are set.
using Body = std::function<Result<Answer>()>;

// Each describes what it takes, with the default of every parameter, and
// returns what answers it. The asker outlives both.
Body DescribeAnnotate(Description& args, Asker& asker);
Body DescribeConvert(Description& args, Asker& asker);
Body DescribeCost(Description& args, Asker& asker);
Body DescribeDiagnose(Description& args, Asker& asker);
Body DescribeDiff(Description& args, Asker& asker);
Body DescribeEvent(Description& args, Asker& asker);
Body DescribeHost(Description& args, Asker& asker);
Body DescribeLayers(Description& args, Asker& asker);
Body DescribeMemory(Description& args, Asker& asker);
Body DescribeMerge(Description& args, Asker& asker);
Body DescribePath(Description& args, Asker& asker);
Body DescribeRanks(Description& args, Asker& asker);
Body DescribeReplay(Description& args, Asker& asker);
Body DescribeReport(Description& args, Asker& asker);
Body DescribeRequests(Description& args, Asker& asker);
Body DescribeRunsAdd(Description& args, Asker& asker);
Body DescribeRunsBaselineList(Description& args, Asker& asker);
Body DescribeRunsBaselineSet(Description& args, Asker& asker);
Body DescribeRunsBaselineShow(Description& args, Asker& asker);
Body DescribeRunsBaselineUnset(Description& args, Asker& asker);
Body DescribeRunsCheck(Description& args, Asker& asker);
Body DescribeRunsCompare(Description& args, Asker& asker);
Body DescribeRunsDecide(Description& args, Asker& asker);
Body DescribeRunsImport(Description& args, Asker& asker);
// Ends with a status of its own, as `git bisect run` wants it.
struct Judgement {
  Document document;
  int status = 0;
};
std::function<Result<Judgement>()> DescribeRunsJudge(Description& args,
                                                     Asker& asker);
Body DescribeRunsList(Description& args, Asker& asker);
Body DescribeRunsPrune(Description& args, Asker& asker);
Body DescribeRunsRecompute(Description& args, Asker& asker);
Body DescribeRunsShow(Description& args, Asker& asker);
Body DescribeRunsTrend(Description& args, Asker& asker);
Body DescribeSlice(Description& args, Asker& asker);
Body DescribeSweep(Description& args, Asker& asker);
Body DescribeTree(Description& args, Asker& asker);
Body DescribeGraphCandidates(Description& args, Asker& asker);
Body DescribeGraphCensus(Description& args, Asker& asker);
Body DescribeGraphDiff(Description& args, Asker& asker);
Body DescribeGraphKernels(Description& args, Asker& asker);
Body DescribeGraphLayer(Description& args, Asker& asker);
Body DescribeGraphLayers(Description& args, Asker& asker);
Body DescribeGraphLogDiff(Description& args, Asker& asker);
Body DescribeGraphPass(Description& args, Asker& asker);
Body DescribeGraphPipeline(Description& args, Asker& asker);
Body DescribeGraphPrint(Description& args, Asker& asker);
Body DescribeGraphReview(Description& args, Asker& asker);
Body DescribeGraphRewrite(Description& args, Asker& asker);

}  // namespace lamina::questions
