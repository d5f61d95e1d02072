//! Names near to one that was mistyped.

/// At most `limit` of the known names that are near enough to be meant, best first.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>, limit: usize) -> Vec<String> {
    let allowed = (name.chars().count() / 3).max(1);
    let distance = |other: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &other.to_lowercase());
    let mut near: Vec<(usize, &str)> = known.map(|other| (distance(other), other)).collect();
    near.retain(|(distance, _)| *distance <= allowed);
    near.sort_unstable();
    near.into_iter().take(limit).map(|(_, name)| name.to_owned()).collect()
}

/// A hint to append to an error, empty when nothing is near.
pub(crate) fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, known, 3).as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}
