#!/usr/bin/env bash
# The paper's headline: does the shuffle take longer with more maps? 32, 64 and 128 maps of the same text into the
# same 32 partitions, on three hosts with slow disks: the sort shuffle, Spark's push-based shuffle (Magnet) and ours.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/headline.sh FOLDER [ROUNDS [MEGABYTES]]
#
# Three rounds of 300 MB; each round begins with another shuffle. FOLDER gets runs.jsonl (events.py) and
# over-time.jsonl (over_time.py). Needs root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(realpath -m "$1")
mkdir -p "$folder"
export WORK=${WORK:-$folder/work} OVER_TIME=$folder/over-time.jsonl
orders=('sort magnet gristmill' 'magnet gristmill sort' 'gristmill sort magnet')
for ((round = 0; round < ${2:-3}; round++)); do
  for maps in 32 64 128; do
    SHUFFLES=${orders[round % 3]} bash "$here/pair.sh" "$folder/runs.jsonl" disks sparksort "$maps" 32 "$((${3:-300} * 1000000))" </dev/null
  done
done
python3 "$here/table.py" "$folder/runs.jsonl"
