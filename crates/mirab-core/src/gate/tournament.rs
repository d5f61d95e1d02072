//! The best of many heads, of which any may come, move or go: a winner tree, in which a head that moves plays its way up again.
use crate::rank::Head;

/// Heads in numbered slots. Reading the best takes constant time, a change at most one comparison for each level of the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Tournament {
    /// By slot, in two halves, for the first nearly always decides; [`Head::LAST`] in slots that are free. As many as a power of two, or
    /// none.
    firsts: Vec<u128>,
    seconds: Vec<u128>,
    /// The slot that wins below each node. The root is node 1, the nodes below node `n` are `2n` and `2n + 1`, the last ones are the slots.
    winners: Vec<u32>,
    free: Vec<u32>,
}

impl Tournament {
    pub fn len(&self) -> usize {
        self.firsts.len() - self.free.len()
    }

    fn head(&self, slot: u32) -> Head {
        Head::of_halves(self.firsts[slot as usize], self.seconds[slot as usize])
    }

    pub fn best(&self) -> Option<Head> {
        let winner = *self.winners.get(1)?;
        Some(self.head(winner)).filter(|head| *head != Head::LAST)
    }

    /// Adds a head; gives its slot, and whether another head is the best now.
    pub fn insert(&mut self, head: Head) -> (u32, bool) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.grow();
            self.free.pop().expect("it has grown")
        });
        (slot, self.replace(slot, head))
    }

    /// Another head for a slot. True when another head is the best now.
    pub fn replace(&mut self, slot: u32, head: Head) -> bool {
        let Self { firsts, seconds, winners, .. } = self;
        let (first, second) = head.halves();
        (firsts[slot as usize], seconds[slot as usize]) = (first, second);
        // Who wins on the way up, beside the winner of the other half of each node.
        let (mut winner, mut best) = (slot, first);
        let mut node = firsts.len() + slot as usize;
        while node > 1 {
            let other = winners[node ^ 1];
            let beside = firsts[other as usize];
            if beside < best || (beside == best && seconds[other as usize] < seconds[winner as usize]) {
                (winner, best) = (other, beside);
            }
            node >>= 1;
            if std::mem::replace(&mut winners[node], winner) == winner && winner != slot {
                // Above, nothing has changed.
                return false;
            }
        }
        true
    }

    /// Empties a slot. True when another head is the best now, or none.
    pub fn remove(&mut self, slot: u32) -> bool {
        if self.len() == 1 {
            *self = Self::default();
            return true;
        }
        self.free.push(slot);
        self.replace(slot, Head::LAST)
    }

    fn grow(&mut self) {
        let (before, after) = (self.firsts.len(), (self.firsts.len() * 2).max(1));
        let last = Head::LAST.halves();
        for (halves, last) in [(&mut self.firsts, last.0), (&mut self.seconds, last.1)] {
            halves.reserve_exact(after - before);
            halves.resize(after, last);
        }
        self.free.extend((before as u32..after as u32).rev());
        self.winners.clear();
        self.winners.reserve_exact(2 * after);
        self.winners.resize(after, 0);
        self.winners.extend(0..after as u32);
        for node in (1..after).rev() {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            self.winners[node] = if self.head(right) < self.head(left) { right } else { left };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Place;
    use crate::rank::Rank;
    use std::collections::BTreeMap;

    #[test]
    fn the_best_is_read_whatever_came_moved_and_went() {
        let head = |seq: u64| Head::new(Rank::new(0, Place { seq, ..Place::default() }, None), 0);
        let (mut tournament, mut there) = (Tournament::default(), BTreeMap::new());
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (of, new) = ((state >> 40) % 300, (state >> 20) % 300);
            match there.remove(&head(of)) {
                Some(slot) if (state >> 33).is_multiple_of(3) => _ = tournament.remove(slot),
                Some(slot) if !there.contains_key(&head(new)) => {
                    let (before, is_new) = (tournament.best(), tournament.replace(slot, head(new)));
                    assert!(is_new || tournament.best() == before);
                    there.insert(head(new), slot);
                }
                Some(slot) => _ = there.insert(head(of), slot),
                None => _ = there.insert(head(of), tournament.insert(head(of)).0),
            }
            assert_eq!(tournament.best(), there.keys().next().copied());
            assert_eq!(tournament.len(), there.len());
        }
        for slot in there.into_values() {
            tournament.remove(slot);
        }
        assert_eq!((tournament.best(), tournament.firsts.capacity()), (None, 0));
    }
}
