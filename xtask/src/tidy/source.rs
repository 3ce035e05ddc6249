//! A Rust file cut into code and comments, line by line, and its code into tokens.
//!
//! The contents of strings and characters are left out of the code, so that a check never
//! stumbles over a word in a message.
//!
//! Rejected: a parser of the whole language. It drops comments, which most checks are about, does
//! not look into macros, and would be the largest part of a build on a fresh machine.

/// A file of Rust code.
pub(crate) struct Source {
    /// Its path from the root of the repository.
    pub(crate) path: String,
    /// Its lines.
    pub(crate) lines: Vec<Line>,
    /// Its code as tokens.
    pub(crate) tokens: Vec<Token>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// The code, with quotes but without what stands between them.
    pub(crate) code: String,
    /// The comments, with their marks.
    pub(crate) comment: String,
}

/// A word, or a character of punctuation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) place: Place,
}

/// What a token stands in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Place {
    /// An item under `#[cfg(test)]`.
    pub(crate) in_test: bool,
    /// An `impl Trait for Type` or an `extern` block, whose functions are documented elsewhere.
    pub(crate) documented_elsewhere: bool,
    /// A `use` declaration.
    pub(crate) in_use: bool,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let lines = split(text);
        let tokens = tokens(&lines);
        Source { path: path.to_owned(), lines, tokens }
    }

    /// Whether the file holds only tests or what serves them.
    pub(crate) fn is_test(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        let folders = &parts[..parts.len() - 1];
        let test_folder = |part: &&str| ["tests", "benches", "examples"].contains(part);
        folders.iter().any(test_folder) || self.path.ends_with("/tests.rs")
    }

    /// The code lines at and above line `line` (counted from 1), up to a blank line, with the
    /// nearest first.
    pub(crate) fn upwards(&self, line: usize) -> impl Iterator<Item = &Line> {
        let blank = |line: &&Line| line.code.trim().is_empty() && line.comment.trim().is_empty();
        self.lines[..line].iter().rev().take_while(move |line| !blank(line))
    }

    /// The comment that begins on line `line` (counted from 1), with the lines that continue it.
    pub(crate) fn comment_from(&self, line: usize) -> String {
        let rest = self.lines[line..].iter();
        let more = rest.take_while(|line| line.code.trim().is_empty() && !line.comment.is_empty());
        let mut text = self.lines[line - 1].comment.clone();
        for line in more {
            text.push(' ');
            text.push_str(&line.comment);
        }
        text
    }
}

enum State {
    Code,
    LineComment,
    /// With the number of comments that are open.
    BlockComment(usize),
    Text,
    /// With the number of `#` that end it.
    RawText(usize),
}

fn split(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = Vec::new();
    let mut line = Line::default();
    let mut state = State::Code;
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let next = chars.get(at + 1).copied().unwrap_or('\n');
        at += 1;
        if c == '\n' {
            lines.push(std::mem::take(&mut line));
            if matches!(state, State::LineComment) {
                state = State::Code;
            }
            continue;
        }
        match state {
            State::Code if c == '/' && next == '/' => {
                state = State::LineComment;
                line.comment.push(c);
            }
            State::Code if c == '/' && next == '*' => {
                state = State::BlockComment(1);
                line.comment.push_str("/*");
                at += 1;
            }
            State::Code if c == '"' => {
                state = raw_hashes(&line.code).map_or(State::Text, State::RawText);
                line.code.push(c);
            }
            State::Code if c == '\'' => {
                line.code.push(c);
                at += literal_length(&chars[at..]);
            }
            State::Code => line.code.push(c),
            State::LineComment => line.comment.push(c),
            State::BlockComment(depth) => {
                line.comment.push(c);
                let (depth, step) = match (c, next) {
                    ('/', '*') => (depth + 1, 1),
                    ('*', '/') => (depth - 1, 1),
                    _ => (depth, 0),
                };
                at += step;
                state = if depth == 0 { State::Code } else { State::BlockComment(depth) };
            }
            State::Text if c == '\\' => at += usize::from(next != '\n'),
            State::Text if c == '"' => {
                state = State::Code;
                line.code.push(c);
            }
            State::Text => {}
            State::RawText(hashes) => {
                let ends =
                    c == '"' && chars[at..].iter().take_while(|c| **c == '#').count() >= hashes;
                if ends {
                    state = State::Code;
                    line.code.push(c);
                }
            }
        }
    }
    if line != Line::default() {
        lines.push(line);
    }
    lines
}

/// The number of `#` before a quote when the code before it begins a raw string.
fn raw_hashes(code: &str) -> Option<usize> {
    let prefix = code.trim_end_matches('#');
    let word = prefix.strip_suffix('r')?;
    let word = word.strip_suffix(['b', 'c']).unwrap_or(word);
    let part_of_word = word.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    (!part_of_word).then_some(code.len() - prefix.len())
}

/// What to pass over after a `'`: the rest of a character, or nothing for a lifetime.
fn literal_length(rest: &[char]) -> usize {
    match rest {
        ['\\', _, tail @ ..] => {
            2 + tail.iter().position(|c| *c == '\'').map_or(0, |quote| quote + 1)
        }
        [_, '\'', ..] => 2,
        _ => 0,
    }
}

fn tokens(lines: &[Line]) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let mut rest = line.code.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = |c: char| c.is_alphanumeric() || c == '_';
            let length = if word(first) {
                rest.find(|c| !word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            let text = rest[..length].to_owned();
            tokens.push(Token { line: index + 1, text, place: Place::default() });
            rest = rest[length..].trim_start();
        }
    }
    place(&mut tokens);
    tokens
}

/// Finds out what each token stands in, from the words before each opening brace.
fn place(tokens: &mut [Token]) {
    let mut blocks: Vec<Place> = Vec::new();
    let mut header: Vec<String> = Vec::new();
    for token in tokens {
        let outer = blocks.last().copied().unwrap_or_default();
        match token.text.as_str() {
            "{" => {
                blocks.push(inside(outer, &header));
                header.clear();
            }
            "}" => {
                blocks.pop();
                header.clear();
            }
            ";" => header.clear(),
            text => header.push(text.to_owned()),
        }
        token.place = Place { in_use: outer.in_use || is_use(&header), ..outer };
    }
}

fn inside(outer: Place, header: &[String]) -> Place {
    let after_attributes = header.iter().rposition(|word| word == "]").map_or(0, |at| at + 1);
    let item = &header[after_attributes..];
    let pairs = || item.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str()));
    let for_type = || pairs().any(|(first, second)| first == "for" && second != "<");
    let is_impl = item.iter().take(2).any(|word| word == "impl");
    let is_extern = item.iter().any(|word| word == "extern") && !item.iter().any(|w| w == "fn");
    Place {
        in_test: outer.in_test || has_cfg_test(header),
        documented_elsewhere: (is_impl && for_type()) || is_extern,
        in_use: is_use(header) || outer.in_use,
    }
}

fn is_use(header: &[String]) -> bool {
    let word = header.iter().position(|word| word == "use");
    word.is_some_and(|at| at == 0 || header[0] == "pub" || header[at - 1] == "]")
}

/// Whether the attributes hold a `cfg` with `test` in it that is not negated.
fn has_cfg_test(header: &[String]) -> bool {
    let Some(cfg) = header.iter().position(|word| word == "cfg") else { return false };
    let words: Vec<&str> =
        header[cfg..].iter().map(String::as_str).take_while(|word| *word != "]").collect();
    words.iter().enumerate().any(|(at, word)| {
        *word == "test" && !(at >= 2 && words[at - 1] == "(" && words[at - 2] == "not")
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, Token};

    fn source(text: &str) -> Source {
        Source::new("crates/x/src/a.rs", text)
    }

    fn code(text: &str) -> Vec<String> {
        source(text).lines.iter().map(|line| line.code.trim().to_owned()).collect()
    }

    #[test]
    fn strings_and_comments_leave_the_code() {
        assert_eq!(code(r#"let a = "unsafe \" {"; // unsafe"#), [r#"let a = "";"#]);
        assert_eq!(
            code("f(r#\"a \" unsafe\"#, b\"x\", '\"', '\\'', 'a')"),
            ["f(r#\"\"#, b\"\", ', ', ')"]
        );
        assert_eq!(
            code("/* a /* b */ unsafe */ fn f<'a>(x: &'a u8) {}"),
            ["fn f<'a>(x: &'a u8) {}"]
        );
        assert_eq!(code("let a = \"one\n unsafe\n\"; x"), ["let a = \"", "", "\"; x"]);
    }

    #[test]
    fn comments_are_kept_by_line() {
        let source = source("a; // one\n/// two\n/* three\n four */ b");
        let comments: Vec<&str> = source.lines.iter().map(|line| line.comment.trim()).collect();
        assert_eq!(comments, ["// one", "/// two", "/* three", "four *"]);
    }

    fn token<'a>(source: &'a Source, text: &str) -> &'a Token {
        source.tokens.iter().find(|token| token.text == text).expect("the token is there")
    }

    #[test]
    fn places() {
        let source = source(
            "use a::{imported};\n#[cfg(test)]\nmod t { fn tested() {} }\nfn plain() {}\n\
             #[cfg(not(test))]\nmod u { fn shipped() {} }\n\
             unsafe impl<F: for<'a> Fn(&'a u8)> Alloc for G<F> { fn method() {} }\n\
             impl<F: for<'a> Fn(&'a u8)> G<F> { fn own() {} }\n\
             unsafe extern \"C\" { fn foreign(); }\nextern \"C\" fn ours() { body() }",
        );
        assert!(token(&source, "imported").place.in_use);
        assert!(token(&source, "tested").place.in_test);
        for name in ["plain", "shipped", "own", "body"] {
            assert_eq!(token(&source, name).place, Default::default(), "{name}");
        }
        assert!(token(&source, "method").place.documented_elsewhere);
        assert!(token(&source, "foreign").place.documented_elsewhere);
    }
}
