//! Instants and durations as a person says them.
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the epoch.
pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// `12 s ago`, `in 5 min`.
pub(crate) fn relative(at: f64, now: f64) -> String {
    match now - at {
        // Also where two clocks differ a little.
        passed if passed.abs() < 1.0 => "just now".into(),
        passed if passed > 0.0 => format!("{} ago", span(passed)),
        passed => format!("in {}", span(-passed)),
    }
}

/// `0.42 s`, `12 s`, `5 min 3 s`, `3 h 12 min`, `2 d 4 h`.
pub(crate) fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and beyond u64 is for ever"
    )]
    let whole = seconds as u64;
    match whole {
        0 => format!("{seconds:.2} s"),
        1..60 => format!("{whole} s"),
        60..3_600 => two(whole, 60, "min", 1, "s"),
        3_600..86_400 => two(whole, 3_600, "h", 60, "min"),
        _ => two(whole, 86_400, "d", 3_600, "h"),
    }
}

/// How long something took, to the nearest unit: `0.42 s`, `2 s`, `5 min 3 s`.
pub(crate) fn rounded(seconds: f64) -> String {
    if seconds < 0.995 { span(seconds) } else { span(seconds.round()) }
}

fn two(whole: u64, large: u64, large_name: &str, small: u64, small_name: &str) -> String {
    match (whole / large, whole % large / small) {
        (count, 0) => format!("{count} {large_name}"),
        (count, rest) => format!("{count} {large_name} {rest} {small_name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units_at_most() {
        let told = [-1.0, 0.25, 12.9, 60.0, 303.0, 3_600.0, 11_530.0, 86_400.0, 187_300.0].map(span);
        let expected = ["0.00 s", "0.25 s", "12 s", "1 min", "5 min 3 s", "1 h", "3 h 12 min", "1 d", "2 d 4 h"];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_took_its_time_is_rounded() {
        let told = [0.254, 0.996, 1.4, 1.9, 59.7, 3_599.6].map(rounded);
        assert_eq!(told, ["0.25 s", "1 s", "1 s", "2 s", "1 min", "1 h"]);
    }

    #[test]
    fn instants_are_told_from_now() {
        let told = [88.0, 99.5, 100.4, 400.0].map(|at| relative(at, 100.0));
        assert_eq!(told, ["12 s ago", "just now", "just now", "in 5 min"]);
    }
}
