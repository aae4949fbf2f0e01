//! The frame of a page.

/// Returns a page with this title. Its body is HTML, in the colours of the style sheet `page.css`, which `styles` adds to.
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
