#!/usr/bin/env bash
# Is the Spark plugin formatted as spark/format.xml says, and does Error Prone find nothing in it and its tests? The
# profile `lint` of spark/pom.xml names the checks.
#
# What was compiled before, in spark/target/lint, is not compiled again.
set -euo pipefail
cd "$(dirname "$0")"
sh needs.sh java
mvn --quiet --batch-mode --file ../spark/pom.xml -Plint formatter:validate test-compile
