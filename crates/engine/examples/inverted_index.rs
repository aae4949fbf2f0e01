//! For each word, the files in which it stands.
//!
//!     cargo run --release --example inverted_index -- FILE...

use gristmill::{Bytes, Chunk, Emit, Input, Job, Made, MapReduce, ProgramError};

pub(crate) struct InvertedIndex;

impl MapReduce for InvertedIndex {
    type Key = Bytes;
    type Value = Bytes;

    fn map(&self, chunk: &mut Chunk<'_>, out: &mut impl Emit<Bytes, Bytes>) -> Result<(), ProgramError> {
        let file = chunk.source().name.as_os_str().as_encoded_bytes();
        for word in chunk.bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            out.emit(word, file);
        }
        Ok(())
    }
}

pub(crate) fn index(input: Input) -> Job<'static, InvertedIndex, Made<String, String>> {
    // The values of a key come in ascending order, so equal files stand together.
    Job::new(&InvertedIndex, input).reduce_to::<String, String>(|word, files, emit| {
        let mut files: Vec<Vec<u8>> = files.owned().collect();
        files.dedup();
        emit(&String::from_utf8_lossy(word), &String::from_utf8_lossy(&files.join(&b' ')));
        Ok(())
    })
}

fn main() -> gristmill::Result<()> {
    for (word, files) in &index(Input::paths(std::env::args_os().skip(1))).run()?.0 {
        println!("{word}\t{files}");
    }
    Ok(())
}
