//! What the pure crates must not reach through any dependency: whatever brings a clock, entropy, a hash order or IO.

/// The crates that are machines without IO.
pub const PURE_CRATES: &[&str] = &["mirab-core", "mirab-flow"];

const BANNED: &[(&str, &[&str])] = &[
    ("clock", &["chrono", "jiff", "quanta", "time", "web-time"]),
    ("entropy", &["fastrand", "getrandom", "rand", "rand_core", "uuid"]),
    ("hash order", &["ahash", "foldhash"]),
    ("IO", &["libc", "mio", "nix", "rusqlite", "rustix", "socket2", "tokio"]),
];

/// Reads `cargo tree -e normal --prefix depth` of one crate, and tells the way to each banned crate.
pub fn check(tree: &str) -> Vec<String> {
    let mut way: Vec<&str> = Vec::new();
    let mut problems = Vec::new();
    for (depth, name) in tree.lines().filter_map(entry) {
        way.truncate(depth);
        way.push(name);
        if let Some(kind) = banned(name) {
            problems.push(format!("{} must not reach {name} ({kind}): {}", way[0], way.join(" -> ")));
        }
    }
    problems
}

/// A line such as `2libc v0.2.1 (*)`: the depth, then the name.
fn entry(line: &str) -> Option<(usize, &str)> {
    let digits = line.find(|c: char| !c.is_ascii_digit())?;
    let name = line[digits..].split(' ').next()?;
    Some((line[..digits].parse().ok()?, name))
}

fn banned(name: &str) -> Option<&'static str> {
    BANNED.iter().find(|(_, names)| names.contains(&name)).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_crates_pass() {
        let tree = "0mirab-core v0.1.0 (/repo)\n1strsim v0.11.1\n1unicode-normalization v0.1.24\n2tinyvec v1.9.0\n";
        assert_eq!(check(tree), [""; 0]);
    }

    #[test]
    fn the_way_to_a_banned_crate_is_told() {
        let tree = "0mirab-core v0.1.0 (/repo)\n1strsim v0.11.1\n1num_cpus v1.0.0\n2libc v0.2.177\n";
        assert_eq!(check(tree), ["mirab-core must not reach libc (IO): mirab-core -> num_cpus -> libc"]);
    }

    #[test]
    fn every_banned_crate_is_found() {
        for name in BANNED.iter().flat_map(|(_, names)| names.iter()) {
            assert_eq!(check(&format!("0mirab-flow v0.1.0\n1{name} v1.0.0 (*)\n")).len(), 1, "{name}");
        }
    }

    #[test]
    fn a_name_that_only_starts_like_a_banned_one_passes() {
        assert_eq!(check("0mirab-flow v0.1.0\n1time-core v0.1.0\n"), [""; 0]);
    }
}
