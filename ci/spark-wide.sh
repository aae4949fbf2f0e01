#!/usr/bin/env bash
# Does the Spark plugin give the right answer in situations that its test suite leaves out? Run by hand or at night:
#   ci/spark-wide.sh [CASE...]
# Without a case all of them run, one after the other. A line is printed for each: what was seen, and the seconds it
# took. Needs a JDK, pyspark (python3, or PYTHON), for "connect" and "python-kills" pip install "pyspark[connect,sql]",
# for the disks root; 8 GiB of memory for huge-record and 6 GiB for large-partition, 3 GiB else. LOGS=FOLDER keeps the
# logs.
# GRISTMILL_SHUFFLE=sort runs the cases with the sort shuffle, to see what it does.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
declare -A files=(
    [records]='large-partition large-records huge-record'
    [disks]='one-executor-full one-of-two-disks-full all-disks-full
        reader-spills-on-full-disk reader-spills-on-full-disks reader-spills-with-one-of-two-disks-full'
    [cached]='cached-frames-lost'
    [memory]='off-heap codecs'
    [idle]='idle-executors idle-executors-decommissioned'
    [python_kills]='python-kills'
    [streaming]='streaming-state streaming-join'
    [stages]='barrier checkpoint cancelled jobs-side-by-side'
    [servers]='standalone-client standalone-cluster connect thrift'
    [many]='many-shuffles many-queries many-blocks'
)
python=${PYTHON:-python3}
spark=$("$python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))') || exit 2
export GRISTMILL_JAR
GRISTMILL_JAR=$("$here/../spark/jar.sh" "$spark" | sed -n 's/ is for Spark .*//p')
[ -f "$GRISTMILL_JAR" ] || exit 2
logs=${LOGS:-$(mktemp -d)}
mkdir -p "$logs"
[ -n "${LOGS:-}" ] || trap 'rm -rf "$logs"' EXIT

# An executor lives for seconds; it need not be compiled twice.
export JDK_JAVA_OPTIONS=${JDK_JAVA_OPTIONS--XX:TieredStopAtLevel=1 -XX:+UseSerialGC}

wrong=0 known=0
for file in records disks cached memory idle python_kills streaming stages servers many; do
    for name in ${files[$file]}; do
        if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
        known=$((known + 1))
        export GRISTMILL_FOLDER=$logs/$name
        mkdir -p "$GRISTMILL_FOLDER"
        start=$SECONDS
        (cd "$here/spark-wide" && timeout -k 60 3600 "$python" -B "$file.py" "$name") >"$logs/$name.log" 2>&1
        rc=$?
        said=$(grep -a '^SAID ' "$logs/$name.log" | sed 's/^SAID //')
        if [ $rc -ne 0 ]; then
            wrong=$((wrong + 1))
            said="WRONG ($rc): $(grep -a -E '^[A-Za-z.]*(Error|Exception|Expired)' "$logs/$name.log" | tail -1 | cut -c1-2000)"
        fi
        echo "$name: $said ($((SECONDS - start)) s)"
    done
done
[ $known -gt 0 ] || { echo "ci/spark-wide.sh: no such case; there are ${files[*]}" >&2; exit 2; }
exit $((wrong > 0))
