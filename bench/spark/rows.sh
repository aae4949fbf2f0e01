#!/usr/bin/env bash
# Every row of the Spark-sort table, the sort shuffle and ours in alternation, until each has its pairs. Stops when the time is up and
# goes on where it stopped when it is called again.
#
#   SPARK=folder of a Spark distribution  PLUGIN=gristmill-spark jar  bench/spark/rows.sh FOLDER [MINUTES]
#
# FOLDER gets loopback.jsonl and hosts.jsonl (the latter as root only: network namespaces). $PAIRS (5), $BYTES (1500000000),
# $LOOPBACK (32 64 128 512) and $HOSTS (32 128) map tasks; empty leaves a row out. A run that takes longer than $LIMIT (20m) fails.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(realpath -m "$1") until=$(($(date +%s) + 60 * ${2:-600}))
pairs=${PAIRS:-5} bytes=${BYTES:-1500000000}
mkdir -p "$folder"
export WORK=${WORK:-$folder/work}

done_pairs() { # done_pairs FILE MAPS: whole pairs in FILE
  python3 - "$1" "$2" "$bytes" <<'PY'
import collections, json, os, sys
path, maps, size = sys.argv[1:]
runs = collections.Counter()
for line in open(path, encoding="utf-8") if os.path.exists(path) else []:
    run = json.loads(line)
    if run["maps"] == maps and run["bytes"] == size:
        runs[run["shuffle"]] += 1
print(min(runs["sort"], runs["gristmill"]))
PY
}

# Rounds over all rows, so that a machine that slows down in the meantime does so for every row.
for ((round = 1; round <= pairs; round++)); do
  for kind in loopback hosts; do
    [ "$kind" = loopback ] && script=sort.sh rows=${LOOPBACK-32 64 128 512} || { script=hosts.sh rows=${HOSTS-32 128}; }
    if [ "$kind" = hosts ] && [ "$(id -u)" != 0 ]; then continue; fi
    for maps in $rows; do
      while [ "$(done_pairs "$folder/$kind.jsonl" "$maps")" -lt "$round" ]; do
        if [ "$(date +%s)" -ge "$until" ]; then
          echo "rows.sh: the time is up; call it again to go on" >&2
          exit 3
        fi
        timeout "${LIMIT:-20m}" bash "$here/$script" "$folder/$kind.jsonl" "$maps" 1 "$bytes"
      done
    done
  done
done
python3 "$here/table.py" "$folder"/*.jsonl
