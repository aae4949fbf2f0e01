//! The places in a line for the shell where a quoted value is a word, or a part of one.
//!
//! A value in single quotes is text only where the shell reads a command: not in quotes of the line, in a comment, or
//! in a here-document. This reads a line from its beginning, knows only what all shells with such quotes read alike,
//! and stops at anything else. A value behind that point is refused.
//!
//! ```text
//!  known     words, \x, '...', "...", $'...' with \n and \t, # to the end of the line, $name, ${name#text}, $(( 1 + 2 )),
//!            $(...) and <(...) and (...) with commands in them, also within "..."
//!  unknown   `...`, ${...} and $((...)) with more than names and signs, here-documents, case and comments within $(...), arrays
//! ```

/// A line: its bytes, and `None` for a value.
pub(crate) type Line = [Option<u8>];

/// Text that may stand in `${...}` and in the index of an array.
const IN_BRACES: &[u8] = b"_$#%?!@*:/.,^+=~-[]";
/// Text that may stand in `$((...))`.
const IN_ARITHMETIC: &[u8] = b"_ \t+-*/%<>=!&|?:,$~^";

/// Refuses a line with a value in a place where it might be anything but text.
///
/// # Errors
///
/// A sentence that names the first such place.
pub(crate) fn check(line: &Line) -> Result<(), String> {
    let mut reading = Reading { line, at: 0, open: Vec::new(), word: Vec::new(), last: b'\n' };
    match reading.read() {
        Err(place) if line[reading.at..].contains(&None) => Err(format!(
            "a placeholder stands {place}, where the quotes that its value gets may not hold: write it outside of such, as in \"before \"{{}}\" after\" \
             and \"$(basename {{}})\", or pass the value as an argument, without --shell: -- sh -c 'basename \"$1\"' sh {{}}"
        )),
        _ => Ok(()),
    }
}

/// The place where reading stopped, as a sentence names it.
type Stop = &'static str;

/// A bracket or a quote whose end has not been read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Quotes,
    /// `$(`, which a word goes on behind.
    Substitution,
    Parenthesis,
}

/// A line that is being read.
struct Reading<'a> {
    line: &'a Line,
    at: usize,
    open: Vec<Open>,
    /// The bytes of the word so far; only the names of variables and `case` matter.
    word: Vec<u8>,
    /// The last byte that is no blank.
    last: u8,
}

impl Reading<'_> {
    fn read(&mut self) -> Result<(), Stop> {
        while let Some(piece) = self.line.get(self.at) {
            match (self.open.last(), *piece) {
                (Some(Open::Quotes), None) => return Err("in double quotes"),
                (Some(Open::Quotes), Some(byte)) => self.in_quotes(byte)?,
                (_, None) => self.pass(1, b'\''),
                (_, Some(byte)) => self.in_command(byte)?,
            }
        }
        Ok(())
    }

    /// Returns a byte behind this one; `None` for a value, and at the end.
    fn ahead(&self, count: usize) -> Option<u8> {
        self.line.get(self.at + count).copied().flatten()
    }

    /// Passes bytes of a word; `sign` stands for them in it.
    fn pass(&mut self, count: usize, sign: u8) {
        self.at += count;
        self.word.push(sign);
        self.last = sign;
    }

    fn in_quotes(&mut self, byte: u8) -> Result<(), Stop> {
        match byte {
            b'"' => {
                self.open.pop();
                self.pass(1, byte);
            }
            b'\\' => match self.line.get(self.at + 1) {
                Some(None) => return Err("in double quotes"),
                Some(Some(b'\n')) => return Err("behind a backslash at the end of a line"),
                _ => self.at += 2,
            },
            b'`' => return Err("in or behind backticks"),
            b'$' => return self.dollar(),
            _ => self.at += 1,
        }
        Ok(())
    }

    fn in_command(&mut self, byte: u8) -> Result<(), Stop> {
        match byte {
            b'\'' => {
                let length = self.length_to(1, b"'", |_| true).ok_or("in single quotes")?;
                self.pass(length + 2, byte);
            }
            b'"' => {
                self.open.push(Open::Quotes);
                self.pass(1, byte);
            }
            b'`' => return Err("in or behind backticks"),
            b'\\' => return self.backslash(),
            b'$' => return self.dollar(),
            b'#' => return self.number_sign(),
            b'(' => return self.parenthesis(),
            b'<' if self.ahead(1) == Some(b'<') => {
                if self.ahead(2) != Some(b'<') {
                    return Err("in or behind a here-document");
                }
                self.end_word(3, byte)?;
            }
            b')' => {
                self.end_word(1, byte)?;
                // One that was not opened belongs to a pattern of case.
                if self.open.pop() == Some(Open::Substitution) {
                    self.word.push(byte);
                }
            }
            b'&' if matches!(self.before(), b'<' | b'>') && !self.is_number_ahead() => {
                // bash expands the name of a file there twice.
                return Err("behind >& without a number");
            }
            b'[' if !self.word.is_empty() && self.word.iter().all(|byte| is_in_name(*byte)) => {
                let length = self.length_to(1, b"]", is_in_braces).ok_or("in or behind the index of an array")?;
                self.pass(length + 2, b'_');
            }
            b' ' | b'\t' => self.end_word(1, self.last)?,
            b'\n' | b';' | b'&' | b'|' | b'<' | b'>' => self.end_word(1, byte)?,
            _ => self.pass(1, byte),
        }
        Ok(())
    }

    /// Ends a word, and passes the bytes behind it.
    fn end_word(&mut self, count: usize, last: u8) -> Result<(), Stop> {
        // Its patterns end with a parenthesis that nothing has opened.
        if !self.open.is_empty() && self.word.ends_with(b"case") {
            return Err("in or behind case within parentheses");
        }
        self.word.clear();
        self.at += count;
        self.last = last;
        Ok(())
    }

    /// Returns the number of bytes from `count` behind this one to `end`; `None` if not all of them are as `is_known`
    /// says.
    fn length_to(&self, count: usize, end: &[u8], is_known: impl Fn(u8) -> bool) -> Option<usize> {
        let rest = self.line.get(self.at + count..)?;
        let is_end = |from: usize| end.iter().enumerate().all(|(at, byte)| rest.get(from + at) == Some(&Some(*byte)));
        let length = (0..rest.len()).find(|from| is_end(*from))?;
        rest[..length].iter().all(|piece| piece.is_some_and(&is_known)).then_some(length)
    }

    /// Returns true if a whole word behind this byte is a number, or `-`.
    fn is_number_ahead(&self) -> bool {
        let rest = &self.line[self.at + 1..];
        let is_end = |piece: &Option<u8>| piece.is_some_and(|byte| b" \t\n;&|<>)".contains(&byte));
        let word = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
        let is_number = word.iter().all(|piece| piece.is_some_and(|byte| byte.is_ascii_digit()));
        !word.is_empty() && is_number || *word == [Some(b'-')]
    }

    fn backslash(&mut self) -> Result<(), Stop> {
        let is_between_words = self.word.is_empty() && matches!(self.before(), b' ' | b'\t' | b'\n');
        match self.line.get(self.at + 1) {
            Some(None) => Err("behind a backslash"),
            Some(Some(b'\n')) if is_between_words => {
                self.at += 2;
                Ok(())
            }
            Some(Some(b'\n')) => Err("behind a backslash at the end of a line"),
            _ => {
                self.pass(2, b'\\');
                Ok(())
            }
        }
    }

    /// The byte before this one; a line end before the first.
    fn before(&self) -> u8 {
        match self.at {
            0 => b'\n',
            at => self.line[at - 1].unwrap_or(b'\''),
        }
    }

    fn dollar(&mut self) -> Result<(), Stop> {
        let is_quoted = self.open.last() == Some(&Open::Quotes);
        match self.line.get(self.at + 1) {
            Some(None) => return Err("behind a dollar sign"),
            Some(Some(b'(')) if self.ahead(2) == Some(b'(') => {
                let is_known = |byte: u8| byte.is_ascii_alphanumeric() || IN_ARITHMETIC.contains(&byte);
                let length = self.length_to(3, b"))", is_known).ok_or("in or behind $((...))")?;
                self.pass(length + 5, b'$');
            }
            Some(Some(b'(')) => {
                self.open.push(Open::Substitution);
                self.at += 2;
                self.word.clear();
                self.last = b'(';
            }
            Some(Some(b'{')) => {
                let length = self.length_to(2, b"}", is_in_braces).ok_or("in or behind ${...}")?;
                self.pass(length + 3, b'$');
            }
            Some(Some(b'[')) => return Err("in or behind $[...]"),
            Some(Some(b'\'')) if !is_quoted => {
                let length = self.length_to(2, b"'", |_| true).ok_or("in single quotes")?;
                let text = &self.line[self.at + 2..][..length];
                // Shells differ in where it ends if a quote is escaped in it.
                let is_known =
                    |at: usize| text[at] != Some(b'\\') || matches!(text.get(at + 1), Some(Some(b'n' | b't')));
                if !(0..length).all(is_known) {
                    return Err("in or behind $'...'");
                }
                self.pass(length + 3, b'$');
            }
            // The number of the shell's process: what follows is no longer behind a dollar sign.
            Some(Some(b'$')) => self.pass(2, b'$'),
            _ => self.pass(1, b'$'),
        }
        Ok(())
    }

    fn number_sign(&mut self) -> Result<(), Stop> {
        let before = self.before();
        let is_text = !self.word.is_empty() && (before.is_ascii_graphic() || before == b' ');
        if is_text {
            self.pass(1, b'#');
            return Ok(());
        }
        let is_comment = self.word.is_empty() && matches!(before, b' ' | b'\t' | b'\n' | b';');
        if !is_comment || !self.open.is_empty() {
            return Err("behind a comment that not all shells read alike");
        }
        let rest = &self.line[self.at..];
        let length = rest.iter().position(|piece| *piece == Some(b'\n')).unwrap_or(rest.len());
        if rest[..length].contains(&None) {
            return Err("in a comment");
        }
        self.at += length;
        Ok(())
    }

    fn parenthesis(&mut self) -> Result<(), Stop> {
        let before = self.before();
        match self.last {
            // A function.
            _ if self.ahead(1) == Some(b')') => self.end_word(2, b')'),
            b'<' | b'>' if before == self.last => self.parenthesis_opens(),
            b'\n' | b';' | b'&' | b'|' | b'(' if self.word.is_empty() && before != b'(' => self.parenthesis_opens(),
            _ => Err("in or behind a parenthesis that belongs to a word or to arithmetic"),
        }
    }

    fn parenthesis_opens(&mut self) -> Result<(), Stop> {
        self.end_word(1, b'(')?;
        self.open.push(Open::Parenthesis);
        Ok(())
    }
}

/// Returns true for the bytes before an index: `name[`, and in zsh also `$name[`.
fn is_in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

fn is_in_braces(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || IN_BRACES.contains(&byte)
}
