//! The option for the encoding of text.

use clap::Args;
use gristmill::{Encoding, Input};

use crate::options::inputs::INPUT;

/// How bytes become text.
#[derive(Args)]
pub struct Text {
    /// The encoding of files that do not begin with a mark (those with a mark of UTF-8 or UTF-16 say it themselves):
    /// utf-8, utf-16le, utf-16be, latin1 (as windows-1252, and ascii too), windows-1251, shift_jis, gb18030 or another
    /// label of the web. They are decoded to UTF-8, and bytes that are no text in it are an error; with bytes, nothing
    /// is decoded, and marks are bytes too
    /// [default: the mark decides, and bytes without one are taken as they are, unless they look like UTF-16 or UTF-32]
    #[arg(long, value_name = "NAME", help_heading = INPUT)]
    encoding: Option<Encoding>,
}

impl Text {
    /// Returns the encoding of text without a mark.
    pub fn encoding(&self) -> Encoding {
        self.encoding.unwrap_or_default()
    }

    /// Returns whether an encoding was named from which the input is decoded.
    pub fn is_named(&self) -> bool {
        self.encoding().name().is_some()
    }

    /// Reads an input as text.
    pub fn of(&self, input: Input) -> Input {
        input.encoding(self.encoding())
    }
}
