//! For each word, the files in which it stands.
//!
//!     cargo run --release --example inverted_index -- FILE...

use gristmill::{Bytes, Emit, Input, Job, MapReduce, ProgramError, Split};

struct InvertedIndex;

impl MapReduce for InvertedIndex {
    type Key = Bytes;
    type Value = Bytes;

    fn map(&self, split: &mut Split<'_>, out: &mut impl Emit<Bytes, Bytes>) -> Result<(), ProgramError> {
        let file = split.source().name.as_os_str().as_encoded_bytes();
        for word in split.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.emit(word, file);
        }
        Ok(())
    }
}

fn main() -> gristmill::Result<()> {
    let job = Job::new(&InvertedIndex, Input::paths(std::env::args_os().skip(1)));
    // The values of a key come in ascending order, so equal files stand together.
    let index = job.reduce_to::<String, String>(|word, files, emit| {
        let mut files: Vec<Vec<u8>> = files.owned().collect();
        files.dedup();
        emit(&String::from_utf8_lossy(word), &String::from_utf8_lossy(&files.join(&b' ')));
        Ok(())
    });
    for (word, files) in &index.run()?.0 {
        println!("{word}\t{files}");
    }
    Ok(())
}
