#!/usr/bin/env bash
# Counts the words of real text: on every processor, once more while a worker is killed, and as coreutils would.
#
#     ci/demo.sh GRISTMILL [TEXT]
#
# Without TEXT, the text is made of the sources that cargo has fetched, which are there after every build. All files
# that it makes are in target/demo.
set -euo pipefail
cd "$(dirname "$0")/.."
gristmill=${1:?the command gristmill}
folder=${CARGO_TARGET_DIR:-target}/demo
mkdir -p "$folder"
text=${2:-$folder/text}
if [ $# = 1 ] && [ ! -e "$text" ]; then
    sources=${CARGO_HOME:-${HOME:?names the folder with .cargo}/.cargo}/registry/src
    if [ ! -d "$sources" ]; then
        echo "ci/demo.sh: there are no sources in $sources: name a TEXT, or build something with cargo" >&2
        exit 1
    fi
    find "$sources" -name '*.rs' -exec cat {} + >"$text.new"
    mv "$text.new" "$text"
fi
export LC_ALL=C
count=("$gristmill" word-count --tokens alpha)

timed() { # timed COMMAND...: sets $took to its seconds
    local start=${EPOCHREALTIME/./}
    "$@"
    took=$(awk "BEGIN { printf \"%.2f\", (${EPOCHREALTIME/./} - $start) / 1e6 }")
}

timed "${count[@]}" --quiet --output "$folder/words.tsv" --timeline "$folder/timeline.html" "$text"
echo "$ gristmill word-count --tokens alpha TEXT"
sort -t$'\t' -k2,2nr "$folder/words.tsv" | sed -n 1,5p
echo "$(wc -l <"$folder/words.tsv") words of $(($(stat -Lc %s "$text") / 1000000)) MB in $took s"

echo
echo '$ gristmill word-count --tokens alpha TEXT &  kill -9 WORKER'
killed=
for pause in 0.2 0.1 0.05 0.02 0; do # until it is neither too early nor too late
    "${count[@]}" --output "$folder/again.tsv" "$text" 2>"$folder/news" &
    job=$!
    sleep "$pause"
    worker=$(awk '{ print $NF }' "/proc/$job/task/$job/children" 2>/dev/null || true)
    [ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null || true
    wait "$job"
    ! grep ' died ' "$folder/news" || killed=yes
    [ -z "$killed" ] || break
done
[ -n "$killed" ] || echo 'The job was over each time before a worker was killed.'
cmp "$folder/words.tsv" "$folder/again.tsv"
echo 'The counts are the same, byte for byte.'

by_hand() {
    tr '[:lower:]' '[:upper:]' <"$text" | tr -cs "A-Z'" '\n' | sed "s/^'*//; /^$/d" | sort | uniq -c | awk '{ print $2 "\t" $1 }' >"$folder/by-hand.tsv"
}
echo
cat <<'COMMAND'
$ tr '[:lower:]' '[:upper:]' <TEXT | tr -cs "A-Z'" '\n' | sed "s/^'*//; /^$/d" | sort | uniq -c
COMMAND
timed by_hand
cmp "$folder/words.tsv" "$folder/by-hand.tsv"
echo "The same counts in $took s"

echo
echo "The workers over time: $folder/timeline.html"
