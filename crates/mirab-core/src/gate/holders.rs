//! The leases that hold units of one resource, and when they are expected to give them back.
use super::blocks::Blocks;
use super::lease::Span;
use super::queue::SortedQueue;
use crate::ids::{ClaimId, Fence};
use crate::time::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Up to so many holders are simply looked at; beyond, they are kept in the order of their expected ends while that is asked for.
const FEW: usize = 64;

/// One that holds units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder {
    pub id: ClaimId,
    pub units: u64,
    pub span: Span,
}

/// Leases in the order of starting. Their sum is a property of the entries: nothing else can change it.
#[derive(Clone, Debug, Default)]
pub(super) struct Holders {
    by_fence: SortedQueue<u64, Holder>,
    sum: u64,
    ordered: Option<Box<Ordered>>,
}

/// Many holders in the order of their ends.
#[derive(Clone, Debug)]
struct Ordered {
    /// By [`Span::end_key`] as it was last read.
    ends: Blocks<(Time, u64)>,
    /// By [`Span::sure_end`].
    sures: Blocks<(Time, u64)>,
    /// When a holder's key in `ends` is to be read again, with the key it has there.
    rekeys: BinaryHeap<Reverse<(Time, u64, Time)>>,
    /// The keys are those of this instant.
    read_at: Time,
    /// Changes since somebody last asked.
    unasked: usize,
}

impl Holders {
    #[inline(always)]
    pub fn insert(&mut self, fence: Fence, holder: Holder) {
        self.by_fence.insert(fence.0, holder);
        self.sum += holder.units;
        if let Some(ordered) = self.ordered.as_mut() {
            ordered.insert(fence.0, holder);
            self.forget_unasked();
        }
    }

    #[inline]
    pub fn remove(&mut self, fence: Fence) {
        let Some(holder) = self.by_fence.remove(&fence.0) else { return };
        self.sum -= holder.units;
        if let Some(ordered) = self.ordered.as_mut() {
            ordered.remove(fence.0, holder);
            self.forget_unasked();
        }
    }

    fn forget_unasked(&mut self) {
        let len = self.len();
        if self.ordered.as_mut().is_some_and(|ordered| {
            ordered.unasked += 1;
            ordered.unasked > len || len < FEW / 2
        }) {
            self.ordered = None;
        }
    }

    #[inline]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.by_fence.len()
    }

    /// In the order of starting.
    pub fn iter(&self) -> impl Iterator<Item = Holder> {
        self.by_fence.iter().map(|(_, holder)| holder)
    }

    /// Brings the order of many holders up to `now`, before they are asked about; few need none.
    pub fn prepare(&mut self, now: Time) {
        if self.len() <= FEW && self.ordered.is_none() {
            return;
        }
        let Self { by_fence, ordered, .. } = self;
        let ordered = ordered.get_or_insert_with(|| Box::new(Ordered::of(by_fence, now)));
        ordered.unasked = 0;
        ordered.read_again(by_fence, now);
    }

    fn ordered_at(&self, now: Time) -> Option<&Ordered> {
        self.ordered.as_deref().filter(|ordered| ordered.read_at == now)
    }

    /// When holders with `units` (at least 1) in all are expected to have ended, one after the other.
    pub fn time_of(&self, units: u64, now: Time) -> Option<Time> {
        match self.ordered_at(now) {
            Some(ordered) => ordered.ends.key_at(units).map(|(end, _)| end.max(now)),
            None => first_with(units, self.iter().map(|holder| (holder.span.expected_end(now), holder.units))),
        }
    }

    /// Units of those that are expected to have ended by `at`, which is not before `now`.
    pub fn freed_by(&self, at: Time, now: Time) -> u64 {
        match self.ordered_at(now) {
            Some(ordered) => ordered.ends.sum_below(&(at.plus(1), 0)),
            None => self.iter().filter(|holder| holder.span.expected_end(now) <= at).map(|holder| holder.units).sum(),
        }
    }

    /// When holders with `units` (at least 1) in all have ended for certain. Those that should have ended before `now` count for nothing.
    pub fn sure_time_of(&self, units: u64, now: Time) -> Option<Time> {
        match self.ordered_at(now) {
            Some(ordered) => {
                let past = ordered.sures.sum_below(&(now, 0));
                ordered.sures.key_at(past + units).map(|(end, _)| end)
            }
            None => {
                let ends = self.iter().map(|holder| (holder.span.sure_end(), holder.units));
                first_with(units, ends.filter(|(end, _)| *end >= now))
            }
        }
    }
}

/// The earliest end by which there are `units`, over ends in any order.
fn first_with(units: u64, ends: impl Iterator<Item = (Time, u64)>) -> Option<Time> {
    if units == 1 {
        return ends.map(|(end, _)| end).min();
    }
    let mut ends: Vec<(Time, u64)> = ends.collect();
    ends.sort_unstable();
    let mut sum = 0;
    ends.into_iter().find_map(|(end, freed)| {
        sum += freed;
        (sum >= units).then_some(end)
    })
}

impl Ordered {
    fn of(holders: &SortedQueue<u64, Holder>, now: Time) -> Self {
        let ends = holders.iter().map(|(fence, holder)| ((holder.span.end_key(now), fence), holder.units)).collect();
        let sures = holders.iter().map(|(fence, holder)| ((holder.span.sure_end(), fence), holder.units)).collect();
        let next =
            |(fence, holder): (u64, Holder)| Reverse((holder.span.next_doubling(now), fence, holder.span.end_key(now)));
        let rekeys = holders.iter().map(next).collect();
        Self { ends: Blocks::of(ends), sures: Blocks::of(sures), rekeys, read_at: now, unasked: 0 }
    }

    #[inline]
    fn insert(&mut self, fence: u64, holder: Holder) {
        let (now, span) = (self.read_at, holder.span);
        self.ends.insert((span.end_key(now), fence), holder.units);
        self.sures.insert((span.sure_end(), fence), holder.units);
        self.rekeys.push(Reverse((span.next_doubling(now), fence, span.end_key(now))));
    }

    #[inline]
    fn remove(&mut self, fence: u64, holder: Holder) {
        self.ends.remove(&(holder.span.end_key(self.read_at), fence));
        self.sures.remove(&(holder.span.sure_end(), fence));
    }

    /// Those whose time has doubled again meanwhile are expected to run on.
    fn read_again(&mut self, holders: &SortedQueue<u64, Holder>, now: Time) {
        while let Some(Reverse((at, fence, key))) = self.rekeys.peek().copied()
            && at <= now
        {
            self.rekeys.pop();
            let Some(holder) = holders.get(&fence) else { continue };
            self.ends.remove(&(key, fence));
            self.ends.insert((holder.span.end_key(now), fence), holder.units);
            self.rekeys.push(Reverse((holder.span.next_doubling(now), fence, holder.span.end_key(now))));
        }
        self.read_at = now;
    }
}
