#!/bin/sh
# Does the library build with each of its features alone, and without xz and zstd where there is no C compiler?
#
#     ci/features.sh         each of them, and runs a program without features
#     ci/features.sh --quick only builds it without features
set -eu
cd "$(dirname "$0")/.."
case "${1:-}" in
'') ;;
--quick) exec "${CARGO:-cargo}" check --locked --quiet --package gristmill --no-default-features ;;
*) echo "ci/features.sh: there is no option $1; there is --quick" >&2 && exit 2 ;;
esac
cargo=${CARGO:-cargo}
target=${CARGO_TARGET_DIR:-target}

for feature in aggregates derive gzip bzip2 zstd xz; do
    "$cargo" check --locked --quiet --package gristmill --no-default-features --features "$feature"
done
without_c() {
    CC=false CARGO_TARGET_DIR="$target/features" "$cargo" "$@"
}
without_c check --locked --quiet --package gristmill --no-default-features --features derive,gzip,bzip2

# A program of somebody else, who took no feature.
folder=$target/features/program
rm -rf "$folder"
mkdir -p "$folder/src"
cat >"$folder/Cargo.toml" <<END
[package]
name = "program"
edition = "2024"
[workspace]
[dependencies]
gristmill = { path = "$PWD/crates/engine", default-features = false }
END
cp Cargo.lock "$folder"
cat >"$folder/src/main.rs" <<'END'
use gristmill::{Bytes, Chunk, Emit, Input, Job, MapReduce, ProgramError};

struct Lines;

impl MapReduce for Lines {
    type Key = Bytes;
    type Value = u64;

    fn combiner(&self) -> Option<impl Fn(u64, u64) -> u64> {
        Some(|a, b| a + b)
    }

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, u64>) -> Result<(), ProgramError> {
        chunk.bytes().split_inclusive(|byte| *byte == b'\n').for_each(|_| out.emit(b"lines", 1));
        Ok(())
    }
}

fn main() -> Result<(), gristmill::Error> {
    let (lines, _) = Job::new(&Lines, Input::paths(std::env::args_os().skip(1))).run()?;
    lines.iter().for_each(|(name, count)| println!("{} {count}", String::from_utf8_lossy(name)));
    Ok(())
}
END
printf 'a\nb\n' >"$folder/text"
printf '\050\265\057\375\044\003' >"$folder/text.zst"
(cd "$folder" && python3 -c 'import zipfile
for name, method in ("stored.zip", zipfile.ZIP_STORED), ("packed.zip", zipfile.ZIP_DEFLATED):
    zipfile.ZipFile(name, "w", method).write("text")')
lines() {
    without_c run --offline --quiet --manifest-path "$folder/Cargo.toml" -- "$folder/$1" 2>&1
}
for name in text stored.zip; do lines "$name" | grep -qx 'lines 2'; done
for name in text.zst packed.zip; do lines "$name" | grep -q 'without the feature'; done
