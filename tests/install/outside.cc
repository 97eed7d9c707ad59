// SPDX-License-Identifier: Apache-2.0
//
// usage: outside TRACE: what a program of others does with the library.
#include <cstdio>
#include <lamina/arrow.h>
#include <lamina/session.h>

extern "C" long long SumOfFirstColumn(struct ArrowArrayStream* stream);

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto session = lamina::Session::Open(argv[1]);
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().ToString().c_str());
    return 3;
  }
  const auto sum = (*session)->Query("SELECT sum(dur_ns) AS ns FROM kernel");
  const auto kernels = (*session)->Get("kernels");
  const auto wrong = (*session)->Get("kernelz");
  const auto durations = (*session)->Query("SELECT dur_ns FROM kernel");
  const auto layers = (*session)->Ask("layers", {{"only", "passes"}});
  const auto cost = lamina::Ask(
      "cost",
      {{"op", "aten::mm"}, {"shapes", "[[8,4],[4,2]]"}, {"dtypes", "bf16"}});
  if (!sum || !kernels || wrong || !durations || !layers || !cost) return 1;
  ArrowArrayStream stream;
  if (!lamina::ExportStream(*durations, &stream)) return 1;
  std::printf("%s %zu kernels, %lld ns, %lld ns, %zu passes, %s flops; %s\n",
              std::string(lamina::Version()).c_str(), (*kernels)->rows(),
              static_cast<long long>((*sum)->At(0, 0).integer()),
              SumOfFirstColumn(&stream),
              (*layers)->result.Find("passes")->rows(),
              lamina::CellText(*(*cost)->result.Find("cost"), 4, 1).c_str(),
              wrong.error().hint.c_str());
}
