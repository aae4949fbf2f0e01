#!/usr/bin/env bash
# Every row of the table, the sort shuffle and ours in alternation, until each row has its pairs. Stops when the time
# is up and goes on where it stopped when it is called again.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/rows.sh FOLDER [MINUTES]
#
# FOLDER gets runs.jsonl, and the table at the end is made from it. $PAIRS (5) of each row; $ROWS: only rows that
# match this regular expression; $SCALE (1): all sizes times this. Rows on hosts and disks are run as root only. A
# pair that takes longer than $LIMIT (30m) fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(realpath -m "$1") until=$(($(date +%s) + 60 * ${2:-600}))
mkdir -p "$folder"
export WORK=${WORK:-$folder/work}

# cluster, job, maps, partitions, megabytes
rows='
loopback sparksort 32 32 1500
loopback sparksort 64 64 1500
loopback sparksort 128 128 1500
loopback sparksort 512 512 1500
loopback terasort 2 32 300
loopback tiny 8 8 0
hosts sparksort 32 32 1500
hosts sparksort 128 128 1500
disks sparksort 96 96 450
disks wordcount 24 24 300
disks sort 24 24 150
disks terasort 24 24 150
disks join 24 24 150
disks aggregation 24 24 300
disks pagerank 24 24 100
'

done_pairs() { # done_pairs CLUSTER JOB MAPS PARTITIONS BYTES: whole pairs in runs.jsonl
  python3 - "$folder/runs.jsonl" "$@" <<'PY'
import json, os, sys
path, *row = sys.argv[1:]
names = ("cluster", "job", "maps", "partitions", "bytes")
with open(path if os.path.exists(path) else os.devnull, encoding="utf-8") as lines:
    print(sum([run[name] for name in names] == row for run in map(json.loads, lines)) // 2)
PY
}

# Rounds over all rows, so that a machine that slows down in the meantime does so for every row. Half of the rows of a
# round are begun by the one shuffle, half by the other, and each row by the other one in the next round.
for ((round = 1; round <= ${PAIRS:-5}; round++)); do
  number=$round
  while read -r cluster job maps partitions megabytes; do
    if [ "$cluster" != loopback ] && [ "$(id -u)" != 0 ]; then continue; fi
    number=$((number + 1))
    row=("$cluster" "$job" "$maps" "$partitions" "$(echo "$megabytes * 1000000 * ${SCALE:-1} / 1" | bc)")
    while [ "$(done_pairs "${row[@]}")" -lt "$round" ]; do
      if [ "$(date +%s)" -ge "$until" ]; then
        echo "rows.sh: the time is up; call it again to go on" >&2
        exit 3
      fi
      FIRST=$([ $((number % 2)) = 1 ] && echo sort || echo gristmill) \
        timeout "${LIMIT:-30m}" bash "$here/pair.sh" "$folder/runs.jsonl" "${row[@]}" </dev/null
    done
  done < <(grep -E "${ROWS:-.}" <<<"$rows" | grep .)
done
python3 "$here/table.py" "$folder/runs.jsonl"
