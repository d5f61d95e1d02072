//! Reads an instant from the command line.

const EXPECTED: &str = "expected 2026-03-01T09:00:00Z, 2026-03-01T12:00:00+03:00, or seconds since 1970";
const DAY_S: i64 = 86_400;

/// Seconds since the epoch. A date without a zone is refused: it would mean another instant on another machine.
pub(crate) fn parse(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds.is_finite() => Ok(seconds),
        _ => instant(text).ok_or_else(|| EXPECTED.to_owned()),
    }
}

fn instant(text: &str) -> Option<f64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone_at);
    #[expect(clippy::cast_precision_loss, reason = "seconds of years up to 9999 are exact")]
    let whole = (day_number(date)? * DAY_S - offset(zone)?) as f64;
    Some(whole + time_of_day(time)?)
}

/// Days since 1970-01-01.
fn day_number(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let (year, month, day) = (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let is_date = parts.next().is_none() && (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    // Years counted from March have their leap day at the end.
    let (march_year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = march_year.div_euclid(4) - march_year.div_euclid(100) + march_year.div_euclid(400);
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    const FROM_YEAR_0_TO_1970: i64 = 719_468;
    is_date.then_some(march_year * 365 + leap_days + day_of_year - FROM_YEAR_0_TO_1970)
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn time_of_day(time: &str) -> Option<f64> {
    let mut parts = time.splitn(3, ':');
    let (hours, minutes) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let seconds = parts.next().unwrap_or("00");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = hours < 24 && minutes < 60 && digits(whole, 2)? < 60 && is_fraction;
    let seconds: f64 = seconds.parse().ok()?;
    #[expect(clippy::cast_precision_loss, reason = "less than a day")]
    is_time.then_some((hours * 3_600 + minutes * 60) as f64 + seconds)
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = if let Some(rest) = zone.strip_prefix('+') { (1, rest) } else { (-1, zone.strip_prefix('-')?) };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let are_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    are_digits.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_with_their_zone() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0.0),
            ("1969-12-31T23:59:59Z", -1.0),
            ("2000-02-29T00:00:00Z", 951_782_400.0),
            ("2026-03-01T12:00:00+03:00", 1_772_355_600.0),
            ("2026-03-01 04:00-05:00", 1_772_355_600.0),
            ("2026-03-01T09:00:00.25z", 1_772_355_600.25),
            ("1772355600.5", 1_772_355_600.5),
        ] {
            assert_eq!(parse(text), Ok(seconds), "{text}");
        }
    }

    #[test]
    fn what_names_no_instant_is_refused() {
        for text in [
            "",
            "noon",
            "2026-03-01",
            "2026-03-01T09:00:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-03-01T24:00:00Z",
            "2026-03-01T09:60:00Z",
            "2026-03-01T09:00:00+3",
            "2026-03-01T09:00:00.Z",
            "26-03-01T09:00:00Z",
            "inf",
            "NaN",
            "2026-03-01T09:00:1eZ",
            "２026-03-01T09:00:00Z",
        ] {
            assert_eq!(parse(text), Err(EXPECTED.to_owned()), "{text}");
        }
    }
}
