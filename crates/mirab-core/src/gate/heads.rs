//! Heads of classes, best first: what has changed since is put right when it is read.
use crate::rank::Head;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// So many of the best are kept in plain order: most that come are among them, and most that leave.
const FRONT: usize = 16;

/// Heads in order, as far as the best are concerned. Removing is left to reading: every head that comes is pushed, and one that is not the
/// head of its class any more is dropped when it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Heads {
    /// The best, best last; all rank above those in `rest`.
    front: Vec<Head>,
    rest: BinaryHeap<Reverse<Head>>,
}

impl Heads {
    pub fn len(&self) -> usize {
        self.front.len() + self.rest.len()
    }

    pub fn push(&mut self, head: Head) {
        if self.rest.peek().is_some_and(|Reverse(best)| *best < head) {
            self.rest.push(Reverse(head));
            return;
        }
        let at = self.front.iter().rposition(|other| *other > head).map_or(0, |at| at + 1);
        self.front.insert(at, head);
        if self.front.len() > 4 * FRONT {
            self.rest.extend(self.front.drain(..2 * FRONT).map(Reverse));
        }
    }

    /// The best that still holds.
    pub fn best(&mut self, holds: impl FnMut(Head) -> bool) -> Option<Head> {
        self.at(0, holds)
    }

    /// The one after `index` better ones, which were read before and still hold.
    pub fn at(&mut self, index: usize, mut holds: impl FnMut(Head) -> bool) -> Option<Head> {
        loop {
            if self.front.len() <= index {
                self.refill();
            }
            let at = self.front.len().checked_sub(index + 1)?;
            let head = self.front[at];
            if holds(head) {
                return Some(head);
            }
            self.front.remove(at);
        }
    }

    fn refill(&mut self) {
        if self.rest.is_empty() {
            return;
        }
        let more = std::iter::from_fn(|| self.rest.pop()).take(FRONT / 2);
        let mut front: Vec<Head> = more.map(|Reverse(head)| head).collect();
        front.reverse();
        front.append(&mut self.front);
        self.front = front;
    }

    /// Only these, from now on.
    pub fn replace(&mut self, heads: impl Iterator<Item = Head>) {
        self.front.clear();
        self.rest = heads.map(Reverse).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Place;
    use crate::rank::Rank;
    use std::collections::BTreeSet;

    #[test]
    fn the_best_are_read_in_order_whatever_came_and_went() {
        let rank = |seq: u64| Rank::new(0, Place { seq, ..Place::default() }, None);
        let (mut heads, mut there) = (Heads::default(), BTreeSet::new());
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let head = Head::new(rank((state >> 40) % 300), 0);
            if there.contains(&head) || (state >> 33).is_multiple_of(3) {
                there.pop_first();
            } else {
                there.insert(head);
                heads.push(head);
            }
            let check = |head| there.contains(&head);
            let read: Vec<Head> = (0..40).map_while(|index| heads.at(index, check)).collect();
            let mut unique = read.clone();
            unique.dedup();
            assert!(unique.into_iter().eq(there.iter().copied().take_while(|head| Some(head) <= read.last())));
        }
    }
}
