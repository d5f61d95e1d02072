//! The known names nearest to one that is not known.
use super::{MOST_CHARACTERS, is_reserved};

/// How many are told.
const TOLD: usize = 3;

/// Cells of distance tables that one search fills in at most: some milliseconds, however many and long the known names are.
const MOST_CELLS: usize = 1_000_000;

/// The known names nearest to `name` for a "did you mean", best first, at most three.
///
/// ```
/// assert_eq!(mirab_core::near_names("dbb", ["db", "gpu"].into_iter()), ["db"]);
/// ```
pub fn near_names<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    search(name, known).0
}

/// Also gives the cells that it took.
///
/// What a distance is at least is told by counting letters; the names that may be nearest come first, and the search ends when none that
/// is left can be nearer than those found.
fn search<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> (Vec<String>, usize) {
    let (wanted, mut cells) = (Letters::of(name), 0);
    if wanted.total > MOST_CHARACTERS {
        return (Vec::new(), cells);
    }
    let candidate = |known: &'a str| {
        let letters = Letters::of(known);
        let (least, most) = (wanted.least_distance(&letters), wanted.total.max(letters.total) / 3 + 1);
        (least <= most).then_some((least, known, most, wanted.total * letters.total))
    };
    let mut candidates: Vec<_> = known.filter(|known| !is_reserved(known)).filter_map(candidate).collect();
    candidates.sort_unstable();
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (least, known, most, cost) in candidates {
        let is_beaten = found.get(TOLD - 1).is_some_and(|(distance, _)| *distance < least);
        if is_beaten || cells + cost > MOST_CELLS {
            break;
        }
        cells += cost;
        let distance = strsim::damerau_levenshtein(name, known);
        if distance <= most {
            found.push((distance, known));
            found.sort_unstable();
            found.truncate(TOLD);
        }
    }
    (found.into_iter().map(|(_, known)| known.to_owned()).collect(), cells)
}

/// How often letters stand in a name, in a few kinds of letters.
struct Letters {
    total: usize,
    kinds: [u16; 64],
}

impl Letters {
    /// Looks no further than a name can be near to a valid one.
    fn of(name: &str) -> Self {
        let mut letters = Self { total: 0, kinds: [0; 64] };
        for letter in name.chars().take(2 * MOST_CHARACTERS) {
            letters.total += 1;
            letters.kinds[letter as usize % 64] += 1;
        }
        letters
    }

    /// An insertion, removal or replacement changes one letter on a side, and a swap none.
    fn least_distance(&self, other: &Self) -> usize {
        let more = |a: &Self, b: &Self| -> usize {
            a.kinds.iter().zip(&b.kinds).map(|(a, b)| usize::from(a.saturating_sub(*b))).sum()
        };
        more(self, other).max(more(other, self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found() {
        let known = ["db", "gpu", "api:*"];
        assert_eq!(near_names("dbb", known.into_iter()), ["db"]);
        assert!(near_names("completely-other", known.into_iter()).is_empty());
    }

    #[test]
    fn the_nearest_are_those_that_comparing_with_each_finds() {
        let known: Vec<String> = (0..3_000).map(|number| format!("{:x}", number * 7_919 % 65_521)).collect();
        for wanted in ["abc", "1", "ffff", "0x12", "a1b2", "dcba", "9é"] {
            let distances = known.iter().map(|known| (strsim::damerau_levenshtein(wanted, known), known));
            let mut near: Vec<_> = distances
                .filter(|(distance, known)| *distance <= known.len().max(wanted.chars().count()) / 3 + 1)
                .collect();
            near.sort_unstable();
            let near: Vec<_> = near.into_iter().take(TOLD).map(|(_, known)| known.clone()).collect();
            assert_eq!(near_names(wanted, known.iter().map(String::as_str)), near, "{wanted}");
        }
    }

    /// The worst there can be: all names are as long as can be and have the same letters, so that counting them tells nothing.
    #[test]
    fn many_long_names_cost_no_more_than_some_of_them() {
        let letters = "abcdefghij".repeat(20);
        let turned = |by: usize| format!("{}{}", &letters[by % 200..], &letters[..by % 200]);
        let known: Vec<String> = (0..10_000).map(turned).collect();
        let wanted: String = letters.chars().rev().collect();
        let (_, cells) = search(&wanted, known.iter().map(String::as_str));
        assert!((MOST_CELLS / 2..=MOST_CELLS).contains(&cells), "{cells} cells");
        let (near, cells) = search(&"a".repeat(201), known.iter().map(String::as_str));
        assert!(near.is_empty() && cells == 0);
    }
}
