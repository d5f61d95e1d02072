//! The words for where a run or a task run stands, and which changes between them exist.
use std::fmt;
use std::str::FromStr;

/// Where a run or a task run stands.
///
/// `Waiting` is stored as one state; whether it is shown as `Queued` or `AwaitingResource` is the gate's answer at reading time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Its time has not come.
    Scheduled,
    /// In line.
    Waiting,
    /// Admitted and holding its units; offered to an engine.
    Pending,
    /// An engine executes it.
    Running,
    /// Failed, and waits for its next attempt; holds nothing.
    AwaitingRetry,
    /// A cancel was asked for; its body has not ended yet.
    Cancelling,
    /// Its body returned.
    Completed,
    /// Its body raised and no attempt is left, or it could not be admitted.
    Failed,
    /// Ended by a cancel.
    Cancelled,
    /// Its engine died and no attempt is left.
    Crashed,
    /// Not executed, because of its flow's overlap policy.
    Skipped,
}

use State::{
    AwaitingRetry, Cancelled, Cancelling, Completed, Crashed, Failed, Pending, Running, Scheduled, Skipped, Waiting,
};

/// Every state with the word that the store and the API have for it.
pub const STATES: [(State, &str); 11] = [
    (Scheduled, "Scheduled"),
    (Waiting, "Waiting"),
    (Pending, "Pending"),
    (Running, "Running"),
    (AwaitingRetry, "AwaitingRetry"),
    (Cancelling, "Cancelling"),
    (Completed, "Completed"),
    (Failed, "Failed"),
    (Cancelled, "Cancelled"),
    (Crashed, "Crashed"),
    (Skipped, "Skipped"),
];

impl State {
    /// The states that may follow this one.
    #[must_use]
    pub fn next(self) -> &'static [State] {
        match self {
            Scheduled => &[Waiting, Failed, Cancelled, Skipped],
            Waiting => &[Pending, Running, Failed, Cancelled],
            Pending => &[Running, Waiting, Crashed, Cancelled],
            Running => &[Completed, Failed, Crashed, AwaitingRetry, Waiting, Cancelling, Cancelled],
            AwaitingRetry => &[Waiting, Cancelled, Crashed],
            Cancelling => &[Cancelled, Crashed],
            Completed | Failed | Cancelled | Crashed | Skipped => &[],
        }
    }

    /// True when nothing follows.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        self.next().is_empty()
    }

    /// The stored word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        STATES.iter().find(|(state, _)| *state == self).map_or("", |(_, word)| word)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = || STATES.map(|(_, word)| word).join(", ");
        STATES
            .iter()
            .find(|(_, known)| *known == word)
            .map(|(state, _)| *state)
            .ok_or_else(|| format!("{word:?} is no state, expected one of {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_there_and_back() {
        for (state, word) in STATES {
            assert_eq!(word.parse(), Ok(state));
            assert_eq!(state.to_string(), word);
        }
        assert!("Done".parse::<State>().is_err());
    }

    #[test]
    fn every_state_can_be_reached_and_left_or_is_terminal() {
        for (state, _) in STATES {
            let reached = STATES.iter().any(|(from, _)| from.next().contains(&state));
            assert!(reached || matches!(state, Scheduled), "{state}");
        }
    }
}
