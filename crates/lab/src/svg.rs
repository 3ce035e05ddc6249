//! What all drawings share: colours for light and dark, and how they get into a file or a page.

use std::fmt::Write;

/// Colours by name, and the same for dark surroundings: `(name, light, dark)`. The five of lines are
/// apart for those who see few colours, too.
const COLOURS: [(&str, &str, &str); 15] = [
    ("page", "#fbfbfa", "#15181c"),
    ("card", "#ffffff", "#1d2126"),
    ("ink", "#20242a", "#e6e8ea"),
    ("soft", "#5c6570", "#a3acb6"),
    ("rule", "#dcdfe3", "#373d45"),
    ("s0", "#0072b2", "#56b4e9"),
    ("s1", "#d55e00", "#f0894a"),
    ("s2", "#00875f", "#3ccf9e"),
    ("s3", "#b0558f", "#e09ac6"),
    ("s4", "#5a5a5a", "#b9b9b9"),
    ("many", "#7fb3d3", "#2f6d94"),
    ("more", "#4a86ad", "#4f9ac9"),
    ("other", "#9aa1a9", "#7b848e"),
    ("unseen", "#e8a33d", "#e0a045"),
    ("late", "#c8402f", "#ef6a58"),
];

/// Rules for the classes that drawings use.
const RULES: &str = "\
svg text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:var(--ink)}\
svg .title{font-size:15px;font-weight:600}svg .soft{fill:var(--soft)}\
svg .end{text-anchor:end}svg .mid{text-anchor:middle}\
svg .grid{stroke:var(--rule);stroke-width:1;fill:none}svg .axis{stroke:var(--soft);fill:none}\
svg .l{fill:none;stroke-width:2;stroke-linejoin:round}\
svg .l0{stroke:var(--s0)}svg .l1{stroke:var(--s1);stroke-dasharray:7 3}\
svg .l2{stroke:var(--s2);stroke-dasharray:2 3}svg .l3{stroke:var(--s3);stroke-dasharray:9 3 2 3}\
svg .l4{stroke:var(--s4);stroke-dasharray:14 4}\
svg .f0{fill:var(--s0)}svg .f1{fill:var(--s1)}svg .f2{fill:var(--s2)}svg .f3{fill:var(--s3)}\
svg .f4{fill:var(--s4)}\
svg .many{fill:var(--many)}svg .more{fill:var(--more)}svg .other{fill:var(--other)}\
svg .unseen{fill:var(--unseen)}svg .late{fill:var(--late)}svg .probe{fill:var(--s1)}\
svg .lane{fill:var(--rule);opacity:.45}svg .paper{fill:var(--card)}";

/// The colours as properties of `of`, and the rules of drawings.
pub(crate) fn style(of: &str) -> String {
    let properties = |pick: fn(&(&str, &str, &str)) -> String| {
        COLOURS.iter().map(pick).collect::<Vec<_>>().join(";")
    };
    let light = properties(|(name, light, _)| format!("--{name}:{light}"));
    let dark = properties(|(name, _, dark)| format!("--{name}:{dark}"));
    format!("{of}{{{light}}}@media(prefers-color-scheme:dark){{{of}{{{dark}}}}}{RULES}")
}

/// A drawing that stands in a page which has the [`style`]. `label` is for those who don't see it.
pub(crate) fn inline(size: (f64, f64), label: &str, content: &str) -> String {
    let label = crate::text::escaped(label);
    let (w, h) = size;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" role=\"img\" \
         aria-label=\"{label}\">{content}</svg>\n"
    )
}

/// A drawing as a file of its own.
pub(crate) fn file(size: (f64, f64), label: &str, content: &str) -> String {
    let (w, h) = size;
    let own = format!(
        "<style>{}</style><rect class=\"paper\" width=\"{w}\" height=\"{h}\"/>{content}",
        style("svg")
    );
    inline(size, label, &own).replacen("<svg ", &format!("<svg width=\"{w}\" height=\"{h}\" "), 1)
}

/// A text at a place; `class` may hold several.
pub(crate) fn text(out: &mut String, at: (f64, f64), class: &str, words: &str) {
    let ((x, y), words) = (at, crate::text::escaped(words));
    let _ = write!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{words}</text>");
}

/// A line from place to place.
pub(crate) fn line(out: &mut String, from: (f64, f64), to: (f64, f64), class: &str) {
    let _ = write!(
        out,
        "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
        from.0, from.1, to.0, to.1
    );
}

/// About how wide a text is at most, at the size that it has on a phone.
pub(crate) fn width(words: &str) -> f64 {
    7.8 * words.chars().count() as f64
}

#[cfg(test)]
mod tests {
    use super::{file, style, text};

    #[test]
    fn a_file_brings_its_colours_for_light_and_dark() {
        let svg = file((10.0, 5.0), "a & b", "<g/>");
        assert!(svg.starts_with("<svg width=\"10\" height=\"5\" "), "{svg}");
        assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("a &amp; b"), "{svg}");
        assert!(!style(":root").contains("http"));
    }

    #[test]
    fn words_are_escaped() {
        let mut out = String::new();
        text(&mut out, (1.0, 2.0), "soft", "a<b");
        assert_eq!(out, "<text x=\"1.0\" y=\"2.0\" class=\"soft\">a&lt;b</text>");
    }
}
