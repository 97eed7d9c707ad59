// SPDX-License-Identifier: Apache-2.0
//
// A job of many ranks in pictures.
#pragma once

#include <vector>

#include "dist/blame.h"
#include "dist/job.h"
#include "dist/measure.h"
#include "lamina/result.h"

namespace lamina::dist {

// exposed_heat_map and wait_heat_map (rank by step, of the table rank_steps),
// stragglers, bandwidth. Those without data are left out.
std::vector<Diagram> DrawPictures(const ResultSet& tables,
                                  const std::vector<RankBlame>& blame,
                                  const std::vector<LinkSeries>& links);

}  // namespace lamina::dist
