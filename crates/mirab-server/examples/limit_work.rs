//! One change of a limit that takes a long edit by hand over with it, for `bench/instructions`: `limit_work NAMES`, counted in
//! [`counted_change`].
//!
//! Of so many names a third has other totals afterwards, a third is gone and a third is new, besides as many that stay.
use mirab_server::Offline;
use mirab_wire::ResourceChange;
use std::path::Path;

fn text(names: std::ops::Range<usize>, permits: u64) -> String {
    names.map(|name| format!("\"name {name}\" = {permits}\n")).collect()
}

#[inline(never)]
fn counted_change(home: &Path, dir: &Path, edited: &str) {
    let offline = Offline::open(home, dir).expect("a home that nobody holds");
    std::fs::write(dir.join("mirab.toml"), edited).expect("a writable directory");
    let change = ResourceChange { permits: Some(3), ..ResourceChange::default() };
    let changed = offline.set("other", change).expect("a plain name");
    assert_eq!(changed.resource.permits, Some(3));
}

fn main() {
    let names: usize = std::env::args().nth(1).and_then(|names| names.parse().ok()).expect("usage: limit_work NAMES");
    let dir = tempfile::tempdir().expect("a writable directory for temporary files");
    let (home, shop) = (dir.path().join("home"), dir.path().join("shop"));
    std::fs::create_dir(&shop).expect("a new directory");
    let declared = format!("[resources]\n{}{}", text(0..names, 1), text(names..2 * names, 1));
    std::fs::write(shop.join("mirab.toml"), declared).expect("a new file");
    let third = names / 3;
    let edited = [
        text(0..third, 2),
        text(2 * third..3 * third, 1),
        text(names..2 * names, 1),
        text(2 * names..2 * names + third, 1),
    ];
    counted_change(&home, &shop, &format!("[resources]\n{}", edited.concat()));
}
