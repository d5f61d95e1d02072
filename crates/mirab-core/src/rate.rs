//! Rates as exact fractions.

/// A rate in units per second, as an exact fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    units: u64,
    seconds: u64,
}

/// Longest time a bucket may need to fill, in nanoseconds times the scale: keeps all products within an `i128`.
const MOST_SCALED: i128 = i128::MAX / 8;

impl Rate {
    /// `units` every `seconds`; both must be above 0.
    #[must_use]
    pub fn per(units: u64, seconds: u64) -> Option<Rate> {
        if units == 0 || seconds == 0 {
            return None;
        }
        let divisor = greatest_common_divisor(units, seconds);
        Some(Rate { units: units / divisor, seconds: seconds / divisor })
    }

    /// Reads a number as its shortest decimal: 0.1 is exactly 1/10.
    ///
    /// # Errors
    /// A sentence that says what is wrong, when it is not positive and finite or has more than 18 digits.
    pub fn from_decimal(rate: f64) -> Result<Rate, String> {
        if !rate.is_finite() || rate <= 0.0 {
            return Err(format!("the rate is {rate}, expected a number of units per second above 0"));
        }
        let text = format!("{rate}");
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let units: Option<u64> = format!("{whole}{decimals}").parse().ok();
        let seconds = 10u64.checked_pow(u32::try_from(decimals.len()).unwrap_or(u32::MAX));
        units
            .zip(seconds)
            .and_then(|(units, seconds)| Rate::per(units, seconds))
            .ok_or_else(|| format!("the rate {rate} has too many digits to be counted exactly: round it to 18 digits"))
    }

    /// Checks that `burst` tokens can be counted exactly at this rate.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check_burst(&self, burst: u64) -> Result<(), String> {
        if burst == 0 {
            return Err("the burst is 0, expected at least 1".into());
        }
        let scaled = i128::from(burst).checked_mul(self.scale());
        if scaled.is_none_or(|scaled| scaled > MOST_SCALED) {
            return Err(format!("the burst {burst} is too large to be counted exactly at this rate: lower it"));
        }
        Ok(())
    }

    /// Scaled tokens in one token: with them, one nanosecond refills exactly [`Rate::per_nanosecond`].
    pub(crate) fn scale(&self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000
    }

    /// Scaled tokens that come in a nanosecond.
    pub(crate) fn per_nanosecond(&self) -> i128 {
        i128::from(self.units)
    }

    /// Units per second as a float, for people to read.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a figure to read, never one to decide with")]
    pub fn as_f64(&self) -> f64 {
        self.units as f64 / self.seconds as f64
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(Rate::from_decimal(0.1).unwrap(), Rate::per(1, 10).unwrap());
        assert_eq!(Rate::from_decimal(50.0).unwrap(), Rate::per(50, 1).unwrap());
        assert_eq!(Rate::from_decimal(1.9).unwrap(), Rate::per(19, 10).unwrap());
        assert_eq!(Rate::from_decimal(1e-6).unwrap(), Rate::per(1, 1_000_000).unwrap());
    }

    #[test]
    fn nonsense_is_refused() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300] {
            assert!(Rate::from_decimal(rate).is_err(), "{rate}");
        }
        assert!(Rate::per(1, 1).unwrap().check_burst(0).is_err());
        assert!(Rate::from_decimal(1.234_567_890_123_4).unwrap().check_burst(u64::MAX).is_err());
    }
}
