//! The frame of a page, and tables in it.

/// The number of rows that a table shows.
const ROWS_MAX: usize = 1000;

/// Returns a page with this title. Its body is HTML, in the colours of the style sheet `page.css`, which `styles` adds
/// to.
///
/// ```
/// let page = gristmill_report::document("Gristmill", &[], "<h1>Grain</h1>");
/// assert!(page.starts_with("<!doctype html>") && page.contains("<body><h1>Grain</h1></body>"));
/// ```
pub fn document(title: &str, styles: &[&str], body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{title}</title>\
         <meta name='viewport' content='width=device-width, initial-scale=1'><style>{}{}</style></head>\n<body>{body}</body></html>\n",
        include_str!("page.css"),
        styles.concat()
    )
}

/// Returns a table. Names of columns and rows are HTML; a row has its cells. Of very many rows, only the first
/// thousand are shown.
///
/// ```
/// let table = gristmill_report::table(&["program"], ["<td>xz</td>".to_owned()].into_iter());
/// assert_eq!(table, "<table><tr><th>program</th></tr><tr><td>xz</td></tr></table>");
/// ```
pub fn table(columns: &[&str], mut rows: impl Iterator<Item = String>) -> String {
    let heads: String = columns.iter().map(|name| format!("<th>{name}</th>")).collect();
    let shown: String = rows.by_ref().take(ROWS_MAX).map(|cells| format!("<tr>{cells}</tr>")).collect();
    let more = match rows.count() {
        0 => String::new(),
        more => format!("<p class='note'>And {more} more.</p>"),
    };
    format!("<table><tr>{heads}</tr>{shown}</table>{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_table_tells_how_many_rows_are_left_out() {
        let rows = |count: usize| table(&["n"], (0..count).map(|number| format!("<td>{number}</td>")));
        assert!(rows(1000).ends_with("<td>999</td></tr></table>"));
        assert!(rows(1002).ends_with("<td>999</td></tr></table><p class='note'>And 2 more.</p>"));
    }
}
