//! An ordered list with sums: which keys come before an instant, and how many units they hold.

/// Most entries of a block.
const FULL: usize = 128;

/// Keys in order, each with units, in blocks that know their sums.
#[derive(Clone, Debug)]
pub(super) struct Blocks<K> {
    blocks: Vec<Block<K>>,
}

#[derive(Clone, Debug)]
struct Block<K> {
    entries: Vec<(K, u64)>,
    sum: u64,
}

impl<K: Ord + Copy> Blocks<K> {
    /// Of entries in any order.
    pub fn of(mut entries: Vec<(K, u64)>) -> Self {
        entries.sort_unstable();
        let block =
            |entries: &[(K, u64)]| Block { entries: entries.to_vec(), sum: entries.iter().map(|(_, u)| u).sum() };
        Self { blocks: entries.chunks(FULL / 2).map(block).collect() }
    }

    /// The block that has the key, or is to have it.
    fn block_of(&self, key: &K) -> usize {
        let at = self.blocks.partition_point(|block| block.entries.last().is_some_and(|(last, _)| last < key));
        at.min(self.blocks.len().saturating_sub(1))
    }

    pub fn insert(&mut self, key: K, units: u64) {
        if self.blocks.is_empty() {
            self.blocks.push(Block { entries: Vec::new(), sum: 0 });
        }
        let at = self.block_of(&key);
        let block = &mut self.blocks[at];
        let place = block.entries.partition_point(|(other, _)| *other < key);
        block.entries.insert(place, (key, units));
        block.sum += units;
        if block.entries.len() > FULL {
            let entries = block.entries.split_off(FULL / 2);
            let sum = entries.iter().map(|(_, units)| units).sum();
            block.sum -= sum;
            self.blocks.insert(at + 1, Block { entries, sum });
        }
    }

    pub fn remove(&mut self, key: &K) {
        let at = self.block_of(key);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let Ok(place) = block.entries.binary_search_by_key(key, |(other, _)| *other) else { return };
        let (_, units) = block.entries.remove(place);
        block.sum -= units;
        if block.entries.is_empty() {
            self.blocks.remove(at);
        }
    }

    /// Units of all keys below `key`.
    pub fn sum_below(&self, key: &K) -> u64 {
        let at = self.blocks.partition_point(|block| block.entries.last().is_some_and(|(last, _)| last < key));
        let whole: u64 = self.blocks[..at].iter().map(|block| block.sum).sum();
        let part =
            self.blocks.get(at).into_iter().flat_map(|block| &block.entries).take_while(|(other, _)| other < key);
        whole + part.map(|(_, units)| units).sum::<u64>()
    }

    /// The first key up to which, itself included, there are `units`.
    pub fn key_at(&self, units: u64) -> Option<K> {
        let mut left = units;
        for block in &self.blocks {
            if block.sum < left {
                left -= block.sum;
                continue;
            }
            for (key, units) in &block.entries {
                if *units >= left {
                    return Some(*key);
                }
                left -= units;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn it_does_what_an_ordered_map_does() {
        let (mut blocks, mut map) = (Blocks::of(vec![(5u64, 2), (1, 3)]), BTreeMap::from([(5u64, 2u64), (1, 3)]));
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (key, units) = ((state >> 40) % 3_000, 1 + (state >> 20) % 5);
            if map.remove(&key).is_some() {
                blocks.remove(&key);
            } else {
                map.insert(key, units);
                blocks.insert(key, units);
            }
            let probe = (state >> 10) % 3_000;
            assert_eq!(blocks.sum_below(&probe), map.range(..probe).map(|(_, u)| u).sum::<u64>());
            let mut sum = 0;
            let first = map.iter().find(|(_, units)| {
                sum += **units;
                sum >= probe.max(1)
            });
            assert_eq!(blocks.key_at(probe.max(1)), first.map(|(key, _)| *key));
        }
    }
}
