#!/bin/sh
# Can the documentation site be built without a warning, and does it work without a network?
#
#     ci/docs.sh        builds target/docs/site; open index.html there
set -eu
cd "$(dirname "$0")/.."
folder=target/docs
export PIP_DISABLE_PIP_VERSION_CHECK=1 NO_MKDOCS_2_WARNING=1

# 1. The generator, in a virtual environment of its own, installed again when its versions change.
if ! cmp -s docs/site/requirements.txt "$folder/installed.txt"; then
  rm -rf "$folder/venv"
  python3 -m venv --without-pip "$folder/venv"
  python3 -m pip --python "$folder/venv" install --quiet --no-compile --requirement docs/site/requirements.txt
  cp docs/site/requirements.txt "$folder/installed.txt"
fi

# 2. The pages. A link or a reference that leads nowhere is an error.
python3 -B ci/docs.py lay-out "$folder/pages"
"$folder/venv/bin/python" -m mkdocs build --strict --config-file docs/site/mkdocs.yml >"$folder/log.txt" 2>&1 || { cat "$folder/log.txt" >&2; exit 1; }
python3 -B ci/docs.py check "$folder/site"
