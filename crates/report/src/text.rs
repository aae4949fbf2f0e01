//! Text that people can read, in a page or on a terminal.

/// Escapes characters that a terminal does not show: control characters, which move the cursor or end the line, and
/// characters that have no width or change the direction of text.
pub fn printable(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => shown.extend(character.escape_default()),
            '\0'..='\x7f' if character.is_control() => shown.push_str(&format!("\\x{:02x}", character as u32)),
            _ if character.is_control() || is_unseen(character) => shown.extend(character.escape_unicode()),
            _ => shown.push(character),
        }
    }
    shown
}

/// Returns a count with its noun, which ends with an s unless the count is 1.
///
/// ```
/// use gristmill_report::text::counted;
///
/// assert_eq!([counted(1, "frog"), counted(2, "frog")], ["1 frog", "2 frogs"]);
/// ```
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Escapes text for HTML, and shows invisible characters as escapes.
pub fn escape(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('\'', "&#39;")
        .replace('"', "&quot;")
}

/// Returns true for characters that Unicode calls formats or separators of lines and paragraphs, invisible fillers,
/// and tags.
fn is_unseen(character: char) -> bool {
    matches!(character,
        '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(printable("a\nb\x1b[2J\u{9b}é \u{7f}"), "a\\nb\\x1b[2J\\u{9b}é \\x7f");
        // A name that ends with gpj.exe read backwards looked like a picture's.
        assert_eq!(printable("a\u{202e}gpj.exe\u{200b}\u{2066}"), "a\\u{202e}gpj.exe\\u{200b}\\u{2066}");
        assert_eq!(printable("naïve 日本 עברית 🎉"), "naïve 日本 עברית 🎉");
        assert_eq!(escape("<a href='b'>&\"\n"), "&lt;a href=&#39;b&#39;&gt;&amp;&quot;\\n");
    }
}
