#!/usr/bin/env bash
# RRZE's gpu-benches beside our own run: `gpu_benches.sh <checkout of RRZE-HPC/gpu-benches at 1038c5d> <folder for results>`.
# It edits a copy: fewer sizes and repeats, for time; pinned host memory in the place of managed memory that only the
# host writes; no counters, whose submodule is not part of the repository.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: $0 <checkout of RRZE-HPC/gpu-benches> <folder for results>" >&2; exit 2; }
commit=1038c5d
copy=$(mktemp -d)
cp -r "$1"/. "$copy"
mkdir -p "$2"
results=$(cd "$2" && pwd)
cd "$copy"
mkdir -p gpu-metrics
echo 'inline void initMeasureMetric() {}' >gpu-metrics/gpu-metrics.hpp
sed -i 's/cudaMallocManaged(/cudaMallocHost((void**)/; s/cudaFree(buf)/cudaFreeHost(buf)/; s/cudaFree(dummy_buf)/cudaFreeHost(dummy_buf)/
	s/i < 21/i < 3/; s/LEN \* 1.042/LEN * 1.25/; s/1 << 24/3 << 18/' gpu-latency/main.cu
sed -i 's/i < 10000/i < 400/' gpu-l2-cache/main.cu
sed -i '/expSeries(\(1[0-9]\|[2-4][0-9]\))/d; s/1000000000 \/ N/200000000 \/ N/' gpu-cache/main.cu
sed -i 's/iter < 31/iter < 11/; /kernels, \(16\|32\|48\|64\|80\|96\|112\), 1/d
	s/warpCount <= 80; warpCount++/warpCount <= 64; warpCount += 12/' gpu-stream/main.cu
for each in latency l2-cache cache stream; do
	nvcc -std=c++20 -O3 -arch=sm_90a -o "$each" "gpu-$each/main.cu" -lnvidia-ml 2>"$each.log" || cat "$each.log" &
done
wait
for each in latency l2-cache cache stream; do
	{ echo "# gpu-$each of RRZE-HPC/gpu-benches at $commit, sm_90a"; "./$each"; } >"$results/gpu-$each.txt"
done
