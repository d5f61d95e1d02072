//! Step, commit, effect: facts are durable before anything that follows from them happens.
use crate::error::StoreUnavailable;
use crate::journal::Journal;
use crate::orchestrator::{Declarations, Options, Orchestrator};
use crate::records::Fact;
use crate::step::{Effect, Wake};
use mirab_core::{SECOND, Time};
use std::sync::Arc;

/// While the store is unavailable it is tried again so often, in nanoseconds.
pub const STORE_RETRY: u64 = SECOND / 2;

/// An [`Orchestrator`] with its [`Journal`].
///
/// The host applies any number of commands, then commits once. When the commit fails, the answers of the whole group are void, errors
/// among them: its callers are told [`StoreUnavailable`]. The machines are then dropped and rebuilt from the journal.
pub struct Driver<J: Journal> {
    journal: J,
    orchestrator: Orchestrator,
    /// What is in memory only, as of the last commit: machines that are rebuilt start from it.
    declared: Arc<Declarations>,
    /// False when the machines hold changes that were not stored, and could not be rebuilt yet.
    is_clean: bool,
    unavailable: Option<String>,
    retry_at: Time,
}

impl<J: Journal> Driver<J> {
    /// Restores what the journal holds. What the restored machines start at once is only out after the first commit.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn open(mut journal: J, options: Options, now: Time) -> Result<Self, J::Error> {
        let orchestrator = Orchestrator::restore(options, journal.load()?, now);
        let declared = orchestrator.declarations();
        Ok(Self { journal, orchestrator, declared, is_clean: true, unavailable: None, retry_at: now })
    }

    /// Puts one command to the machines. Its answer counts only once [`Driver::commit`] succeeded.
    pub fn apply<R>(&mut self, now: Time, command: impl FnOnce(&mut Orchestrator) -> R) -> R {
        self.orchestrator.advance(now);
        command(&mut self.orchestrator)
    }

    /// Commits all that was applied since the last commit; gives the effects out that may now be carried out.
    ///
    /// # Errors
    /// When the facts could not be committed: nothing was accepted and nothing starts. Also while the machines could not be rebuilt.
    pub fn commit(&mut self, now: Time) -> Result<Vec<Effect>, StoreUnavailable> {
        if !self.is_clean {
            return Err(self.rebuild(now));
        }
        let mut step = self.orchestrator.take_step();
        if step.facts.is_empty() && self.unavailable.is_some() && now >= self.retry_at {
            // Something harmless to write, to learn whether the store is back.
            step.facts.push(Fact::Counters(self.orchestrator.counters()));
        }
        let committed = match step.facts.is_empty() {
            true => Ok(()),
            false => self.journal.commit(&step.facts).inspect(|()| self.unavailable = None),
        };
        match committed {
            Ok(()) => {
                self.declared = self.orchestrator.declarations();
                Ok(step.effects)
            }
            Err(error) => {
                self.unavailable = Some(error.to_string());
                self.is_clean = false;
                Err(self.rebuild(now))
            }
        }
    }

    /// Drops the machines, whose changes were not stored, for new ones made from the journal and what was declared before.
    fn rebuild(&mut self, now: Time) -> StoreUnavailable {
        self.retry_at = now.plus(STORE_RETRY);
        match self.journal.load() {
            Ok(stored) => {
                self.orchestrator = Orchestrator::restore_declared(Arc::clone(&self.declared), stored, now);
                self.is_clean = true;
            }
            Err(error) => self.unavailable = Some(error.to_string()),
        }
        StoreUnavailable { why: self.unavailable.clone().unwrap_or_default() }
    }

    /// The instant to call `handle_timeout` and commit at, if nothing happens before, and why.
    ///
    /// While the store is unavailable no other timer counts: what it changed could not be stored, and would be due again at once.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Time, Wake)> {
        match self.unavailable {
            Some(_) => Some((self.retry_at, Wake::Store)),
            None => self.orchestrator.poll_timeout(),
        }
    }

    /// For queries.
    #[must_use]
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.orchestrator
    }

    /// What the store said when it failed last; `None` once a commit succeeded since.
    #[must_use]
    pub fn unavailable(&self) -> Option<&str> {
        self.unavailable.as_deref()
    }

    /// The journal, for reading.
    #[must_use]
    pub fn journal(&self) -> &J {
        &self.journal
    }

    /// The journal, for a host that must reach its store.
    pub fn journal_mut(&mut self) -> &mut J {
        &mut self.journal
    }
}
