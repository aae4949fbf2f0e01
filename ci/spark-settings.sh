#!/usr/bin/env bash
# Does any setting of Spark lose a row? Runs two jobs on two executors under each setting of Spark that touches a
# shuffle, through 0, 1, tiny and huge values:
#   ci/spark-settings.sh [REGEX]
# REGEX chooses values by lines such as "spark.shuffle.file.buffer = 1t". Values of GROUP (6) settings are set at once;
# if a job is not right then, each half of them is set again, down to one. GROUP=1 sets one at a time. All settings
# take more than an hour: PART=2/8 takes the settings 2, 10, 18 and so on. Prints a line for each value; it fails if
# rows are wrong, or if the sort shuffle gives rows where Gristmill does not. Where a job fails with one value, the
# sort shuffle is run with it, and what both say is printed.
set -euo pipefail
cd "$(dirname "$0")/../spark"
rm -f target/spark-settings.txt
mkdir -p target
touch target/spark-settings.txt
tail -f target/spark-settings.txt &
trap 'kill $!' EXIT
mvn -B -q test -Dtest=SettingsMatrix -Dgristmill.settings.limit=150 \
    -Dgristmill.settings.group="${GROUP:-6}" -Dgristmill.settings.part="${PART:-0/1}" -Dgristmill.settings="${1:-}"
