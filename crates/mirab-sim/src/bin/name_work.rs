//! A fixed amount of work on names of a size, for `bench/instructions`: `name-work SIZE`, counted in [`counted_names`].
//!
//! Each piece is repeated up to the size, so that whatever is looked at more often the longer a text is shows between two sizes.
use mirab_core::{Template, check_declared, check_requested};
use std::hint::black_box;

/// Braces that open, close, or do neither; stars; fields; letters to compose; marks to sort.
const PIECES: [&str; 12] =
    ["{", "}", "{{", "{{ a }}", "{a.", "{a}*", "*", "x", " ", "\u{0}", "e\u{301}", "\u{301}\u{316}"];

#[inline(never)]
fn counted_names(texts: &[String]) {
    for text in texts {
        let _ = black_box(check_declared(text));
        let _ = black_box(check_requested(text));
        let _ = black_box(Template::parse(text).and_then(|template| template.render(|_| Ok("value".into()))));
    }
}

fn main() {
    let size: usize = std::env::args().nth(1).and_then(|size| size.parse().ok()).expect("a size in bytes");
    let mut texts: Vec<String> = PIECES.iter().map(|piece| piece.repeat(size / piece.len())).collect();
    // One field whose name goes on, and one with as many parts as fit.
    texts.push(format!("{{{}}}", "a".repeat(size)));
    texts.push(format!("{{a{}}}", ".a".repeat(size / 2)));
    counted_names(&texts);
}
