#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes every sample again. usage: samples/make_samples.sh [DIR]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=${1:-$here}
make_trace() { python3 "$here/../tools/generator/make_trace.py" "$@"; }

make_trace train -o "$out/train_step.json.gz"
make_trace serve -o "$out/serve.json.gz" --prefills 2 --decodes 6
make_trace serve -o "$out/moe.json.gz" --experts 64 --decodes 4
make_trace graphs -o "$out/graphs" --experts 32 --streams 2 --replays 12
make_trace train -o "$out/ranks" --ranks 4 --layers 2 --no-stacks \
  --offset-us 500 --drift-ppm 5 --slow-rank 2 --bucket 30000000

python3 "$here/../tools/generator/make_xplane.py" -o "$out/jax.xplane.pb"
python3 "$here/../tools/generator/make_dump.py" -o "$out/dumps" --miss 3
python3 "$here/../tools/generator/make_fusion_dump.py" -o "$out/fusions" --layers 4
python3 "$here/../tools/generator/make_dialects.py" -o "$out/dialects" \
  --run "$out/compiled.json"
for kind in train oom random; do
  python3 "$here/../tools/generator/make_snapshot.py" "$kind" -o "$out/memory"
done
