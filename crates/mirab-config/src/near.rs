//! Names near to one that was mistyped.

/// At most `limit` of the known names that are near enough to be meant, best first.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>, limit: usize) -> Vec<String> {
    let (name, length) = (name.to_lowercase(), name.chars().count());
    let allowed = (length / 3).max(1);
    // The length alone tells of most: a distance takes as long as one name times the other, and a request can say any name.
    let may_be_near = |other: &&str| length.abs_diff(other.chars().count()) <= allowed;
    let distance = |other: &str| strsim::damerau_levenshtein(&name, &other.to_lowercase());
    let mut near: Vec<(usize, &str)> = known.filter(may_be_near).map(|other| (distance(other), other)).collect();
    near.retain(|(distance, _)| *distance <= allowed);
    near.sort_unstable();
    near.into_iter().take(limit).map(|(_, name)| name.to_owned()).collect()
}

/// A hint to append to an error, empty when nothing is near.
#[must_use]
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known, 3).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}
