#!/usr/bin/env bash
# Do the files of a release work where nothing else is?
#
#     ci/installed.sh FOLDER [PART...]     FOLDER is what ci/dist.sh has made; parts: archive debian wheel source jar
#
# The Debian package runs in the smallest Debian (debootstrap makes its root: needs root and apt), the archive with an
# empty PATH, the wheel and the source archive in fresh environments of Python, and the jar in a Spark. Each gives the
# answer of the README's first example.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
made=$(cd "${1:?the folder that ci/dist.sh has made}" && pwd -P)
shift
[ $# -gt 0 ] || set -- archive debian wheel source jar
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$made" && sha256sum --check --quiet SHA256SUMS)
# By coreutils.
expected=$(tr -s '[:space:]' '\n' <LICENSE | grep . | LC_ALL=C sort | uniq -c | LC_ALL=C sort -k1,1nr -k2 | awk 'NR <= 5 {print $2 "\t" $1}')
check() { # check WHAT ANSWER
    if [ "$2" != "$expected" ]; then
        printf 'ci/installed.sh: %s says\n%s\ninstead of\n%s\n' "$1" "$2" "$expected" >&2
        exit 1
    fi
    echo "$1: the right answer"
}

# The example as a program.
cat >"$work/program.py" <<'END'
import gristmill as gm

words = gm.read_text("LICENSE").flat_map(str.split).count_by_value()
for word, count in words.top(5, by="value"):
    print(word, count, sep="\t")
END
# A fresh environment of Python with what is named.
environment() { # environment NAME PACKAGES
    python3 -m venv "$work/$1"
    "$work/$1/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}"
}

try_archive() {
    mkdir "$work/archive"
    tar -xzf "$made"/gristmill-*-linux.tar.gz -C "$work/archive" --strip-components 1
    check 'the archive' "$(env -i "$work/archive/gristmill" word-count --top 5 LICENSE)"
}

try_debian() {
    root=$here/target/dist/tools/debian
    if [ ! -e "$root/bin/sh" ]; then
        command -v debootstrap >/dev/null || apt-get install -qy --no-install-recommends debootstrap >/dev/null
        debootstrap --variant=minbase stable "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$work/debootstrap.log" 2>&1 ||
            { tail "$work/debootstrap.log" >&2; exit 1; }
    fi
    cp "$made"/gristmill_*.deb "$root/tmp/gristmill.deb"
    cp LICENSE "$root/tmp"
    chroot "$root" dpkg --install /tmp/gristmill.deb >/dev/null
    # It fails, and with pipefail a pipe would, too.
    said=$(chroot "$root" gristmill word-count /tmp/LICENSE 2>&1 || true)
    if [[ $said != *'/proc is not mounted'* ]]; then
        echo 'ci/installed.sh: without /proc the command does not say so' >&2
        exit 1
    fi
    mount -t proc proc "$root/proc"
    trap 'umount "$root/proc"; rm -rf "$work"' EXIT
    check 'the Debian package' "$(chroot "$root" gristmill word-count --top 5 /tmp/LICENSE)"
    chroot "$root" dpkg --purge gristmill >/dev/null
}

# Without Rust or a C compiler.
try_wheel() {
    environment wheel "$made"/gristmill-*.whl
    check 'the wheel' "$(env -i "$work/wheel/bin/python" "$work/program.py")"
    check 'its command' "$(env -i "$work/wheel/bin/gristmill" word-count --top 5 LICENSE)"
}

try_source() {
    environment source -C profile=dev "$(find "$made" -name 'gristmill-*.tar.gz' ! -name '*-linux.tar.gz')"
    check 'the source archive' "$("$work/source/bin/python" "$work/program.py")"
}

# The jar that the wheel carries, on two executors.
try_jar() {
    environment jar "$made"/gristmill-*.whl 'pyspark>=4'
    cat >"$work/spark.py" <<'END'
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
counts = spark.sparkContext.textFile(sys.argv[1], 4).flatMap(str.split).map(lambda word: (word, 1)).reduceByKey(int.__add__)
for word, count in sorted(counts.collect(), key=lambda pair: (-pair[1], pair[0].encode()))[:5]:
    print(word, count, sep="\t")
END
    settings=$("$work/jar/bin/python" -c 'import gristmill; [print("--conf", f"{key}={value}") for key, value in gristmill.spark.config().items()]')
    # The shuffle is small, so the sort shuffle would take it.
    # shellcheck disable=SC2086 # It is a list.
    check 'the jar' "$(PATH=$work/jar/bin:$PATH spark-submit --master 'local-cluster[2,1,1024]' $settings --conf spark.gristmill.fallback=false \
        "$work/spark.py" "$here/LICENSE" 2>"$work/spark.log" || tail "$work/spark.log" >&2)"
    grep -q 'Gristmill is active' "$work/spark.log" || { echo 'ci/installed.sh: the shuffle was not active' >&2; exit 1; }
}

for part; do
    if ! declare -F "try_$part" >/dev/null; then
        echo "ci/installed.sh: there is no part $part; there are archive debian wheel source jar" >&2
        exit 2
    fi
    "try_$part"
done
