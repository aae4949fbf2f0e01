#!/usr/bin/env bash
# Makes what a release consists of, from the commit that is checked out:
#
#     ci/dist.sh [FOLDER]        into FOLDER, by default target/dist/NAME
#     ci/dist.sh --twice         makes it twice, in clones of different paths, and compares the bytes
#
# NAME is the version if the commit has the tag vVERSION, else VERSION~DAY.COMMIT, which sorts before it; the wheel, the
# source archive and the jars are named for the version alone. RELEASE.md says what the files are.
#
# It needs what `make test` needs, and fetches the rest: three Sparks (1.2 GB) and cargo-cyclonedx, in fixed versions,
# into target/dist/tools; and the newest zig, which links the Python module with an old C library, and maturin.
set -euo pipefail
cd "$(dirname "$0")/.."
here=$PWD
say() { echo "ci/dist.sh: $*" >&2; }

sh ci/needs.sh rust cc python java
# What the other checks of a night note as passed is no part of a release.
if [ -n "$(git status --porcelain -- ':!ci/passed')" ]; then
    say 'there are changes that are not committed, and a release is made of a commit: commit or stash them'
    exit 1
fi
commit=$(git rev-parse HEAD)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
name=$version
if [ "$(git rev-parse --quiet --verify "v$version^{commit}" || true)" != "$commit" ]; then
    name=$version~$(git log -1 --format=%cd --date=format:%Y%m%d).${commit:0:8}
    say "this is no release, because the commit has no tag v$version"
fi

if [ "${1:-}" = --twice ]; then
    first=$here/target/dist/first second=$here/target/dist/second/in/another/folder
    rm -rf "$first" "$second"
    "$0" "$first"
    git clone --quiet . "$second"
    mkdir -p "$second/target/dist"
    ln -s "$here/target/dist/tools" "$second/target/dist/tools"
    env -u CARGO_TARGET_DIR "$second/ci/dist.sh" "$second/target/dist/made"
    (cd "$second/target/dist/made" && sha256sum --check --quiet "$first/SHA256SUMS")
    echo "the same bytes twice: $(wc -l <"$first/SHA256SUMS") files"
    exit
fi

made=${1:-$here/target/dist/$name}
work=$here/target/dist/work
tools=$here/target/dist/tools
export CARGO_TARGET_DIR=$here/target/dist/build
rm -rf "$made" "$work"
mkdir -p "$made" "$work" "$tools"
made=$(cd "$made" && pwd)

# 1. The source of the commit, and nothing else. Nothing below depends on where it lies, or on the day.
git clone --quiet . "$work/source"
cd "$work/source"
git checkout --quiet "$commit"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0 PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1
registry=${CARGO_HOME:-$HOME/.cargo}
unpacked=$work/unpacked/gristmill-$version
remap=''
export CFLAGS=''
for path in "$PWD=/gristmill" "$unpacked=/gristmill" "$CARGO_TARGET_DIR=/build" "$registry=/cargo"; do
    remap="$remap --remap-path-prefix=$path"
    CFLAGS="$CFLAGS -ffile-prefix-map=$path"
done
# The pages of a clone refer to each other; of those that lie alone, only the text is left of such a reference.
alone() { # alone FOLDER
    python3 - "$1"/*.md <<'END'
import pathlib, re, sys

for name in sys.argv[1:]:
    page = pathlib.Path(name)

    def reference(found):
        target = found[2].partition("#")[0]
        return found[0] if re.match("[a-z]+:", found[2]) or target == "" or (page.parent / target).exists() else found[1]

    page.write_text(re.sub(r"(?<!!)\[([^\[\]]*)\]\(([^()\s]+)\)", reference, page.read_text()))
END
}
pack() { # pack ARCHIVE FOLDER: an archive that depends on nothing but the files
    tar --create --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX --directory "${2%/*}" "${2##*/}" |
        gzip --no-name --best >"$1"
}

# 2. The command, linked with its C library: it runs on every Linux of this architecture.
host=$(rustc --version --verbose | sed -n 's/^host: //p')
say 'the command'
RUSTFLAGS="$remap -C target-feature=+crt-static" cargo build --release --locked --quiet --package gristmill-cli \
    --features gristmill-cli/columnar --target "$host"
binary=$CARGO_TARGET_DIR/$host/release/gristmill
folder=$work/gristmill-$name
mkdir -p "$folder/man" "$folder/completions"
strip -o "$folder/gristmill" "$binary"
"$folder/gristmill" completions --man "$folder/man"
for shell in bash zsh fish; do "$folder/gristmill" completions "$shell" >"$folder/completions/gristmill.$shell"; done
cp -r LICENSE LICENSES THIRD-PARTY.md CHANGELOG.md docs/*.md docs/*.svg "$folder"
alone "$folder"
pack "$made/gristmill-$name-${host%%-*}-linux.tar.gz" "$folder"

# 3. The same for Debian and what comes from it.
say 'the Debian package'
architecture=$(dpkg --print-architecture)
root=$work/debian
mkdir -p "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/man/man1" "$root/usr/share/doc/gristmill" \
    "$root/usr/share/bash-completion/completions" "$root/usr/share/zsh/vendor-completions" "$root/usr/share/fish/vendor_completions.d"
cp "$folder/gristmill" "$root/usr/bin"
for page in "$folder"/man/*; do gzip --no-name --best <"$page" >"$root/usr/share/man/man1/${page##*/}.gz"; done
cp "$folder/completions/gristmill.bash" "$root/usr/share/bash-completion/completions/gristmill"
cp "$folder/completions/gristmill.zsh" "$root/usr/share/zsh/vendor-completions/_gristmill"
cp "$folder/completions/gristmill.fish" "$root/usr/share/fish/vendor_completions.d/gristmill.fish"
cp THIRD-PARTY.md docs/*.md docs/*.svg "$root/usr/share/doc/gristmill"
alone "$root/usr/share/doc/gristmill"
gzip --no-name --best <CHANGELOG.md >"$root/usr/share/doc/gristmill/changelog.gz"
cat >"$root/usr/share/doc/gristmill/copyright" <<END
Gristmill is used under the Apache License 2.0, /usr/share/common-licenses/Apache-2.0.
It is linked with the GNU C Library, under the GNU Lesser General Public License,
version 2.1 or later, /usr/share/common-licenses/LGPL-2.1, and with the crates whose
licences are in THIRD-PARTY.md beside this file.
END
cat >"$root/DEBIAN/control" <<END
Package: gristmill
Version: $name
Architecture: $architecture
Maintainer: the Gristmill developers <gristmill@localhost>
Installed-Size: $(du --summarize --apparent-size --block-size=1K "$root/usr" | cut -f 1)
Section: science
Priority: optional
Description: MapReduce for one big machine, with every worker in its own process
 Counts words, sorts lines and sums columns of files that are larger than
 memory, on all processors, and survives the death of its workers.
END
chmod -R u+rw,go=rX "$root"
dpkg-deb --root-owner-group -Zxz --build "$root" "$made/gristmill_${name}_$architecture.deb" >/dev/null

# 4. A jar for each version of Spark.
say 'the jars'
sparks=''
for spark in $(sed -n 's/^SPARKS = \[\(.*\)\]/\1/p' python/backend/gristmill_build.py | tr -d '",'); do
    [ -d "$tools/spark-$spark/pyspark/jars" ] ||
        python3 -m pip install --quiet --no-deps --target "$tools/spark-$spark" "pyspark==$spark"
    said=$(spark/jar.sh "$tools/spark-$spark/pyspark" | tail -n 1)
    cp "${said% is for Spark *}" "$made"
    sparks=$sparks:$tools/spark-$spark/pyspark
done

# 5. The source archive, and the wheel that is built from it. Its command is the one above.
say 'the source archive and the wheel'
if [ ! -x "$tools/python/bin/python" ]; then
    python3 -m venv "$tools/python"
    "$tools/python/bin/python" -m pip install --quiet build==1.3.0
fi
{
    "$tools/python/bin/python" -m build --sdist --outdir "$made" .
    mkdir "$work/unpacked"
    tar -xzf "$made/gristmill-$version.tar.gz" -C "$work/unpacked"
    RUSTFLAGS=$remap "$tools/python/bin/python" -m build --wheel --outdir "$made" -C command="$folder/gristmill" -C libc=2.28 \
        -C spark="${sparks#:}" "$unpacked"
} >"$work/python.log" 2>&1 || { tail -n 30 "$work/python.log" >&2; exit 1; }

# 6. What is in the command, and in the module of the wheel, for those who must know (CycloneDX).
say 'the lists of components'
[ -x "$tools/bin/cargo-cyclonedx" ] ||
    CFLAGS='' cargo install --quiet --locked --root "$tools" --target-dir "$tools/build" cargo-cyclonedx@0.5.7
list() { # list CRATE NAME [OPTION...]
    PATH=$tools/bin:$PATH cargo cyclonedx --quiet --format json --manifest-path "crates/$1/Cargo.toml" --override-filename "$2" "${@:3}"
    # It has the time and the path of the build, a random number, and no C library.
    python3 - "crates/$1/$2.json" "$PWD" "$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)" >"$made/$2.cdx.json" <<'END'
import datetime, json, os, sys, uuid

file, folder, glibc = sys.argv[1:]
text = open(file).read().replace(folder, "/gristmill")
listed = json.loads(text)
moment = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
listed["metadata"]["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
listed["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(listed['components'], sort_keys=True))}"
licence = [{"expression": "LGPL-2.1-or-later"}]
if "crates/cli" in file:
    listed["components"].append({"type": "library", "bom-ref": "glibc", "name": "glibc", "version": glibc, "licenses": licence})
print(json.dumps(listed, indent=2))
END
}
list cli "gristmill-$name" --features columnar
list python "gristmill-python-$name"

(cd "$made" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
echo "$made:"
(cd "$made" && du --apparent-size --human-readable -- *)
