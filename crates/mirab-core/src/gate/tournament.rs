//! The best of many heads, of which any may come, move or go: a winner tree, in which a head that moves plays its way up again.
use crate::rank::Head;

/// Heads in numbered slots. Reading the best takes constant time, a change at most one comparison for each level of the tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Tournament {
    /// By slot; [`Head::LAST`] in slots that are free. As many as a power of two, or none.
    heads: Vec<Head>,
    /// Who wins below each node. The root is node 1, the nodes below node `n` are `2n` and `2n + 1`, the last ones are the slots.
    winners: Vec<Winner>,
    free: Vec<u32>,
}

/// A slot, with [`Head::short`] of its head, which nearly always decides.
#[derive(Clone, Copy, Debug, Default)]
struct Winner {
    short: u64,
    slot: u32,
}

impl Tournament {
    pub fn len(&self) -> usize {
        self.heads.len() - self.free.len()
    }

    pub fn best(&self) -> Option<Head> {
        let winner = self.winners.get(1)?;
        Some(self.heads[winner.slot as usize]).filter(|head| *head != Head::LAST)
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
        let Self { heads, winners, .. } = self;
        heads[slot as usize] = head;
        let mut best = Winner { short: head.short(), slot };
        let mut node = heads.len() + slot as usize;
        winners[node] = best;
        // Who wins on the way up, beside the winner of the other half of each node.
        while node > 1 {
            let other = winners[node ^ 1];
            let is_tie = other.short == best.short;
            if other.short < best.short || (is_tie && heads[other.slot as usize] < heads[best.slot as usize]) {
                best = other;
            }
            node >>= 1;
            let before = std::mem::replace(&mut winners[node], best);
            if before.slot == best.slot && best.slot != slot {
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
        let (before, after) = (self.heads.len(), (self.heads.len() * 2).max(1));
        self.heads.reserve_exact(after - before);
        self.heads.resize(after, Head::LAST);
        self.free.extend((before as u32..after as u32).rev());
        self.winners.clear();
        self.winners.reserve_exact(2 * after);
        self.winners.resize(after, Winner::default());
        let slots = self.heads.iter().zip(0..).map(|(head, slot)| Winner { short: head.short(), slot });
        self.winners.extend(slots);
        for node in (1..after).rev() {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let is_right = self.heads[right.slot as usize] < self.heads[left.slot as usize];
            self.winners[node] = if is_right { right } else { left };
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
        assert_eq!((tournament.best(), tournament.heads.capacity()), (None, 0));
    }
}
