//! The placeholders of a command, named as in GNU parallel: `{}`, `{.}`, `{2/}`, `{#}`.

/// A placeholder in a command, by what it is replaced with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// All values of a job.
    Values(ValuePart),
    /// One value, counted from the first.
    Value(usize, ValuePart),
    /// One value, counted from the last.
    FromEnd(usize, ValuePart),
    /// The number of the job.
    Number,
    /// The slot in which the job runs.
    Slot,
}

/// The part of a value that replaces a placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValuePart {
    Whole,
    /// Without its last extension.
    Stem,
    /// Without its folder.
    Name,
    /// Its folder.
    Folder,
    /// Without folder and last extension.
    NameStem,
}

/// A piece of a command's word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePiece {
    Text(Vec<u8>),
    Placeholder(Placeholder),
}

/// The placeholders that there are.
const KNOWN: &str = "{} {.} {/} {//} {/.} {#} {%}, and {1} {1.} {1/} {1//} {1/.} {-1} with the number of a value";

/// Takes a word apart.
///
/// Other text in braces stays as it is, because it is often a program: `awk '{print}'`, `a{2,3}`, `${HOME}`,
/// `{{.Name}}`. Only what looks like a placeholder of GNU parallel that does not exist here is refused.
pub fn pieces(word: &[u8]) -> Result<Vec<TemplatePiece>, String> {
    let (mut pieces, mut text, mut at) = (Vec::new(), Vec::new(), 0);
    while at < word.len() {
        if let Some((inner, end)) = braces(&word[at..]) {
            if let Some(found) = placeholder(inner) {
                if !text.is_empty() {
                    pieces.push(TemplatePiece::Text(std::mem::take(&mut text)));
                }
                pieces.push(TemplatePiece::Placeholder(found));
                at += end;
                continue;
            }
            // ${...} is a variable of the shell, @{...} a revision of git, {{...}} a template.
            let is_text = at > 0 && b"$@{".contains(&word[at - 1]);
            if !is_text && is_mistaken(inner) {
                let inner = String::from_utf8_lossy(inner);
                return Err(format!(
                    "{{{inner}}} is not a placeholder; there are {KNOWN}. If it is meant as text, pass it as a value: COMMAND {{1}} {{2}} ::: '{{{inner}}}' ::: VALUES"
                ));
            }
        }
        text.push(word[at]);
        at += 1;
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(TemplatePiece::Text(text));
    }
    Ok(pieces)
}

/// Returns what stands in the braces with which a text begins, and where they end.
fn braces(text: &[u8]) -> Option<(&[u8], usize)> {
    let inner = text.strip_prefix(b"{")?;
    let end = inner.iter().position(|byte| *byte == b'}')?;
    Some((&inner[..end], end + 2))
}

fn placeholder(inner: &[u8]) -> Option<Placeholder> {
    match inner {
        b"#" => return Some(Placeholder::Number),
        b"%" => return Some(Placeholder::Slot),
        _ => {}
    }
    let (number, suffix) = inner.split_at(number_bytes(inner));
    let part = match suffix {
        b"" => ValuePart::Whole,
        b"." => ValuePart::Stem,
        b"/" => ValuePart::Name,
        b"//" => ValuePart::Folder,
        b"/." => ValuePart::NameStem,
        _ => return None,
    };
    if number.is_empty() {
        return Some(Placeholder::Values(part));
    }
    let number: isize = std::str::from_utf8(number).ok()?.parse().ok()?;
    match number {
        0 => None,
        1.. => Some(Placeholder::Value(number as usize - 1, part)),
        _ => Some(Placeholder::FromEnd(number.unsigned_abs() - 1, part)),
    }
}

/// Returns the length of the number with which a text begins; a minus may stand before it.
fn number_bytes(text: &[u8]) -> usize {
    let sign = usize::from(text.starts_with(b"-"));
    match text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => 0,
        digits => sign + digits,
    }
}

/// Returns true for what is more likely a mistaken placeholder than a part of a program: a number with something
/// behind it, or one that only GNU parallel has (`{..}`, `{+/}`, `{%.gz}`, `{= perl =}`).
fn is_mistaken(inner: &[u8]) -> bool {
    if inner.len() >= 2 && inner.starts_with(b"=") && inner.ends_with(b"=") {
        return true;
    }
    if inner.iter().any(|byte| byte.is_ascii_whitespace() || *byte == b'{') {
        return false;
    }
    let (number, rest) = inner.split_at(number_bytes(inner));
    if !number.is_empty() {
        // {2,3} repeats in a regular expression, {1..9} counts in a shell.
        let counts = rest.strip_prefix(b"..").is_some_and(|to| number_bytes(to) > 0);
        return !rest.starts_with(b",") && !counts;
    }
    match inner {
        [b'.' | b'+', ..] => true,
        [b'%' | b'#', next, ..] => !next.is_ascii_alphanumeric(),
        _ => !inner.is_empty() && inner.iter().all(|byte| b"./#%+-".contains(byte)),
    }
}

impl ValuePart {
    /// Returns the part of a value, as GNU parallel does: text decides, not what there is on the disk.
    pub fn of(self, value: &[u8]) -> &[u8] {
        match self {
            ValuePart::Whole => value,
            ValuePart::Stem => stem(value),
            ValuePart::Name => name(value),
            ValuePart::Folder => folder(value),
            ValuePart::NameStem => stem(name(value)),
        }
    }
}

fn stem(value: &[u8]) -> &[u8] {
    match value.iter().rposition(|byte| *byte == b'.') {
        Some(dot) if !value[dot..].contains(&b'/') => &value[..dot],
        _ => value,
    }
}

fn name(value: &[u8]) -> &[u8] {
    value.iter().rposition(|byte| *byte == b'/').map_or(value, |slash| &value[slash + 1..])
}

fn folder(value: &[u8]) -> &[u8] {
    let without_slashes = |path: &'_ [u8]| path.iter().rposition(|byte| *byte != b'/').map_or(0, |last| last + 1);
    let path = &value[..without_slashes(value)];
    let parent = &path[..path.len() - name(path).len()];
    match &parent[..without_slashes(parent)] {
        b"" if value.starts_with(b"/") => b"/",
        b"" => b".",
        folder => folder,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `cp {} {.}.bak ::: a b` wrote both files to one named `{.}.bak`.
    #[test]
    fn the_parts_of_values_are_those_of_gnu_parallel() {
        // What GNU parallel 20221122 prints for {.} {/} {//} {/.}.
        for (value, parts) in [
            ("a.tar.gz", ["a.tar", "a.tar.gz", ".", "a.tar"]),
            ("d.e/f", ["d.e/f", "f", "d.e", "f"]),
            ("d.e/f.g", ["d.e/f", "f.g", "d.e", "f"]),
            ("a", ["a", "a", ".", "a"]),
            (".bashrc", ["", ".bashrc", ".", ""]),
            ("d/.x", ["d/", ".x", "d", ""]),
            ("a.", ["a", "a.", ".", "a"]),
            (".", ["", ".", ".", ""]),
            ("..", [".", "..", ".", "."]),
            ("a/b/", ["a/b/", "", "a", ""]),
            ("/", ["/", "", "/", ""]),
            ("//", ["//", "", "/", ""]),
            ("/a", ["/a", "a", "/", "a"]),
            ("a//b", ["a//b", "b", "a", "b"]),
            ("./a b.c d", ["./a b", "a b.c d", ".", "a b"]),
            ("it's/$(x).y", ["it's/$(x)", "$(x).y", "it's", "$(x)"]),
            ("", ["", "", ".", ""]),
        ] {
            let found = [ValuePart::Stem, ValuePart::Name, ValuePart::Folder, ValuePart::NameStem]
                .map(|part| String::from_utf8_lossy(part.of(value.as_bytes())).into_owned());
            assert_eq!(found, parts, "{value:?}");
        }
        assert_eq!(ValuePart::Stem.of(b"caf\xe9.\xff"), b"caf\xe9");
        assert_eq!(ValuePart::Name.of(b"a\nb/c\n"), b"c\n");
    }

    #[test]
    fn braces_of_a_program_stay_text_and_mistaken_placeholders_are_refused() {
        for text in [
            "{print}",
            "{print $1}",
            "{ 1d }",
            "a{2,3}",
            "a{2,}",
            "{1..9}",
            "{a,b}",
            "${1x}",
            "${HOME%.x}",
            "stash@{0}",
            "{{.Name}}",
            "{:.2f}",
            "%{http_code}",
            "{%s}",
            "{#a}",
            "{/b/d}",
            "{x",
            "x}",
            "{foo}",
        ] {
            assert_eq!(pieces(text.as_bytes()), Ok(vec![TemplatePiece::Text(text.into())]), "{text}");
        }
        for text in [
            "{0}",
            "{1x}",
            "{3-5}",
            "{1..}",
            "{2#}",
            "{-0}",
            "{.x}",
            "{..}",
            "{...}",
            "{/..}",
            "{+/}",
            "{+.}",
            "{##}",
            "{%%}",
            "{%.gz}",
            "{= $_ =}",
            "{99999999999999999999}",
        ] {
            let wrong = pieces(format!("a{text}").as_bytes()).expect_err(text);
            assert!(wrong.starts_with(&format!("{text} is not a placeholder")) && wrong.contains("{/.}"), "{wrong}");
        }
    }

    #[test]
    fn placeholders_are_found_in_words() {
        let placeholder = |found| vec![TemplatePiece::Placeholder(found)];
        for (text, found) in [
            ("{}", placeholder(Placeholder::Values(ValuePart::Whole))),
            ("{//}", placeholder(Placeholder::Values(ValuePart::Folder))),
            ("{12/.}", placeholder(Placeholder::Value(11, ValuePart::NameStem))),
            ("{-1.}", placeholder(Placeholder::FromEnd(0, ValuePart::Stem))),
            ("{#}", placeholder(Placeholder::Number)),
            ("{%}", placeholder(Placeholder::Slot)),
            (
                "{a{1}",
                vec![
                    TemplatePiece::Text(b"{a".to_vec()),
                    TemplatePiece::Placeholder(Placeholder::Value(0, ValuePart::Whole)),
                ],
            ),
            ("", vec![TemplatePiece::Text(Vec::new())]),
        ] {
            assert_eq!(pieces(text.as_bytes()), Ok(found), "{text}");
        }
    }
}
