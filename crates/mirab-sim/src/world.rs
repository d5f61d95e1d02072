//! A gate, a virtual clock and a host that is as simple as can be: for cases that are told in a few lines.
use crate::amount::Amount;
use crate::subject::Subject;
use mirab_core::{ClaimId, Ended, Fence, Place, Refusal, Release, Settled, Start, Submission, Time};

/// Work that comes at an instant and holds what it got for a while.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When it is submitted.
    pub at: Time,
    /// Its name.
    pub id: String,
    /// Units by resource name.
    pub needs: Vec<(&'static str, u64)>,
    /// Higher first.
    pub priority: i32,
    /// How long its body runs, in nanoseconds.
    pub hold: u64,
}

/// Claims are known by the order of their names; a name that comes again is a new claim.
#[derive(Debug, Default)]
pub struct World<S> {
    /// What is tried.
    pub gate: S,
    /// The host's clock.
    pub now: Time,
    /// Every start so far.
    pub starts: Vec<Start>,
    /// Claims that were refused after they had waited, with the code.
    pub refused: Vec<(String, &'static str)>,
    names: Vec<String>,
}

impl<S: Subject> World<S> {
    /// An empty gate at instant 0.
    #[must_use]
    pub fn new() -> Self {
        Self::aged(None)
    }

    /// The same, with ageing.
    #[must_use]
    pub fn aged(aging: Option<u64>) -> Self {
        Self { gate: S::fresh(aging), now: Time(0), starts: Vec::new(), refused: Vec::new(), names: Vec::new() }
    }

    /// Declares semaphores.
    ///
    /// # Panics
    /// When the gate refuses one.
    pub fn semaphores(&mut self, totals: &[(&str, u64)]) {
        for (name, permits) in totals {
            self.gate.declare(self.now, name, Amount::Semaphore(*permits)).expect("declared");
        }
    }

    /// Declares a bucket of `units` every `seconds`.
    ///
    /// # Panics
    /// When the gate refuses it.
    pub fn bucket(&mut self, name: &str, units: u64, seconds: u64, burst: u64) {
        self.gate.declare(self.now, name, Amount::bucket(units, seconds, burst)).expect("declared");
    }

    /// Changes the total of a semaphore.
    ///
    /// # Panics
    /// When the gate refuses it.
    pub fn set_permits(&mut self, name: &str, permits: u64) {
        self.gate.set_limit(self.now, name, Amount::Semaphore(permits)).expect("a declared name");
        self.collect();
    }

    /// Submits work; tells why it was refused.
    ///
    /// # Errors
    /// The gate's refusal.
    pub fn try_submit(&mut self, id: &str, needs: &[(&str, u64)], priority: i32) -> Result<Place, Refusal> {
        self.send(id, needs, priority, None)
    }

    /// Submits work that the gate must accept.
    ///
    /// # Panics
    /// When it is refused.
    pub fn submit(&mut self, id: &str, needs: &[(&str, u64)], priority: i32) {
        self.try_submit(id, needs, priority).expect("accepted");
    }

    /// Calls a task inside the body `run`.
    ///
    /// # Errors
    /// The gate's refusal.
    pub fn call(&mut self, id: &str, run: &str, needs: &[(&str, u64)]) -> Result<Place, Refusal> {
        let parent = self.id(run);
        self.send(id, needs, 0, Some(parent))
    }

    fn send(
        &mut self,
        id: &str,
        needs: &[(&str, u64)],
        priority: i32,
        parent: Option<ClaimId>,
    ) -> Result<Place, Refusal> {
        self.names.push(id.into());
        let claim = Submission { id: self.id(id), kind: id, needs, priority, parent, place: None };
        let place = self.gate.submit(self.now, claim);
        self.collect();
        place
    }

    /// The id of the latest claim of that name.
    ///
    /// # Panics
    /// When there was none.
    #[must_use]
    pub fn id(&self, name: &str) -> ClaimId {
        ClaimId(1 + self.names.iter().rposition(|known| known == name).expect("a name that was submitted") as u64)
    }

    /// The name of a claim.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn name(&self, id: ClaimId) -> &str {
        &self.names[usize::try_from(id.0 - 1).expect("an id given here")]
    }

    /// The body of `id` ends.
    pub fn end(&mut self, id: &str) -> Release {
        let (id, fence) = self.lease(id);
        let done = self.gate.release(self.now, id, fence, Ended::ByItself);
        self.collect();
        done
    }

    /// The body of `id` tells the true cost of its tokens.
    ///
    /// # Panics
    /// When it took none.
    pub fn settle(&mut self, id: &str, name: &str, actual: u64) -> Settled {
        let (id, fence) = self.lease(id);
        let settled = self.gate.settle(self.now, id, fence, name, actual).expect("it took tokens");
        self.collect();
        settled
    }

    fn lease(&self, id: &str) -> (ClaimId, Fence) {
        let id = self.id(id);
        (id, self.starts.iter().rev().find(|s| s.id == id).map_or(Fence(0), |s| s.fence))
    }

    /// Cancels a waiting claim.
    pub fn cancel(&mut self, id: &str) -> bool {
        let done = self.gate.cancel(self.now, self.id(id));
        self.collect();
        done
    }

    fn collect(&mut self) {
        self.starts.extend(std::iter::from_fn(|| self.gate.poll_start()));
        while let Some((id, refusal)) = self.gate.poll_refused() {
            let name = self.name(id).to_owned();
            self.refused.push((name, refusal.code()));
        }
    }

    /// Time passes up to `to`, in nanoseconds; every instant on the way at which the gate asks to be called is honoured.
    ///
    /// # Panics
    /// When the gate asks for an instant that is not ahead.
    pub fn advance(&mut self, to: u64) {
        while let Some((at, _)) = self.gate.poll_timeout().filter(|(at, _)| at.0 <= to) {
            assert!(at > self.now, "a timer that does not move: {at:?}");
            self.now = at;
            self.gate.handle_timeout(at);
            self.collect();
        }
        self.now = Time(to);
        self.gate.handle_timeout(self.now);
        self.collect();
    }

    /// True while it holds a lease.
    #[must_use]
    pub fn holds(&self, id: &str) -> bool {
        self.gate.lease(self.id(id)).is_some()
    }

    /// True while it is in line.
    #[must_use]
    pub fn waits(&self, id: &str) -> bool {
        self.gate.explain(self.id(id)).is_some()
    }

    /// When the latest claim of that name started.
    #[must_use]
    pub fn started_at(&self, id: &str) -> Option<u64> {
        self.starts.iter().rev().find(|s| self.name(s.id) == id).map(|s| s.at.0)
    }

    /// Names in order of their starts.
    #[must_use]
    pub fn started(&self) -> Vec<&str> {
        self.starts.iter().map(|s| self.name(s.id)).collect()
    }

    /// Units of a resource that are in use; checks the sum over its holders on the way.
    ///
    /// # Panics
    /// When the name is unknown, or what is shown is not what is held.
    #[must_use]
    pub fn used(&self, name: &str) -> u64 {
        let used = self.gate.resource(name).expect("a known name").used;
        assert_eq!(used, self.gate.holders(name).iter().map(|(_, units, _)| units).sum::<u64>(), "holders of {name}");
        used
    }

    /// Lets arrivals come and bodies end, each at its instant, until `until`; ends before arrivals of the same instant.
    pub fn drive(&mut self, mut arrivals: Vec<Arrival>, until: u64) {
        arrivals.sort_by_key(|a| a.at);
        let holds: Vec<(String, u64)> = arrivals.iter().map(|a| (a.id.clone(), a.hold)).collect();
        let mut arrivals = arrivals.into_iter().peekable();
        let (mut ends, mut seen) = (Vec::new(), self.starts.len());
        loop {
            for start in &self.starts[seen..] {
                let name = self.name(start.id);
                if let Some((_, hold)) = holds.iter().find(|(id, _)| id == name) {
                    ends.push((start.at.0 + hold, name.to_owned()));
                }
            }
            seen = self.starts.len();
            ends.sort();
            let end = ends.first().map(|(at, _)| *at);
            let timer = self.gate.poll_timeout().map(|(at, _)| at.0);
            let next = [end, arrivals.peek().map(|a| a.at.0), timer].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= until) else {
                return;
            };
            self.advance(next);
            if end.is_some_and(|at| at <= next) {
                self.end(&ends.remove(0).1);
            } else if let Some(a) = arrivals.next_if(|a| a.at.0 <= next) {
                self.submit(&a.id, &a.needs, a.priority);
            }
        }
    }
}

/// One-unit claims `small0`, `small1`, ... from `start`, one `every` nanoseconds, each for `hold`.
#[must_use]
pub fn stream(resource: &'static str, start: u64, every: u64, until: u64, hold: u64) -> Vec<Arrival> {
    let times = (start..until).step_by(usize::try_from(every).unwrap_or(usize::MAX)).enumerate();
    let small =
        |(n, at)| Arrival { at: Time(at), id: format!("small{n}"), needs: vec![(resource, 1)], priority: 0, hold };
    times.map(small).collect()
}
