//! What a new run does while its flow is busy up to its cap.
use std::str::FromStr;

/// What a new run does when `max_concurrent` runs of its flow are due and have not ended.
///
/// Decided when the run is created, or falls due; never for a retry or a rerun after a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overlap {
    /// It waits for its turn.
    #[default]
    Enqueue,
    /// It ends as Skipped.
    Skip,
    /// It ends as Cancelled.
    CancelNew,
}

/// Message of a run that ended because of its flow's overlap policy.
pub(crate) const STILL_ACTIVE: &str = "previous run still active";

impl Overlap {
    /// The word for it in a flow's options.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Overlap::Enqueue => "enqueue",
            Overlap::Skip => "skip",
            Overlap::CancelNew => "cancel_new",
        }
    }

    /// True when a new run may join the line beside `active` others that are due and not terminal.
    pub(crate) fn admits(self, active: u64, max_concurrent: Option<u64>) -> bool {
        self == Overlap::Enqueue || max_concurrent.is_none_or(|cap| active < cap)
    }
}

impl FromStr for Overlap {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "enqueue" => Ok(Overlap::Enqueue),
            "skip" => Ok(Overlap::Skip),
            "cancel_new" => Ok(Overlap::CancelNew),
            _ => Err(format!("{word:?} is no overlap policy, expected enqueue, skip or cancel_new")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_skip_and_cancel_new_turn_a_run_away_and_only_at_the_cap() {
        for policy in [Overlap::Skip, Overlap::CancelNew] {
            assert!(policy.admits(1, Some(2)) && !policy.admits(2, Some(2)) && policy.admits(9, None));
        }
        assert!(Overlap::Enqueue.admits(9, Some(1)));
    }

    #[test]
    fn words_go_there_and_back() {
        for policy in [Overlap::Enqueue, Overlap::Skip, Overlap::CancelNew] {
            assert_eq!(policy.as_str().parse(), Ok(policy));
        }
        assert!("queue".parse::<Overlap>().is_err());
    }
}
