//! An ordered queue: mostly joined at its end and left at its front, and both are cheap.
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// So far from an end, entries are moved instead of remembered as exceptions.
const NEAR: usize = 32;

/// Entries in the order of their keys. Joining at the end and leaving at the front take constant time, anything else `O(log n)`: what
/// joins or leaves far from both ends is kept aside, so that a long queue is never moved.
#[derive(Clone, Debug)]
pub(super) struct SortedQueue<K, V> {
    entries: VecDeque<(K, V)>,
    /// `None` while nothing joined or left in the middle: mostly.
    aside: Option<Box<Aside<K, V>>>,
}

/// What does not go by the ends.
#[derive(Clone, Debug)]
struct Aside<K, V> {
    /// Keys of entries that have left, but are still there.
    left: BTreeSet<K>,
    /// Entries that joined in the middle.
    joined: BTreeMap<K, V>,
}

impl<K, V> Default for SortedQueue<K, V> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), aside: None }
    }
}

impl<K: Ord + Copy, V: Copy> SortedQueue<K, V> {
    pub fn len(&self) -> usize {
        let aside = self.aside.as_ref();
        self.entries.len() + aside.map_or(0, |aside| aside.joined.len()) - aside.map_or(0, |aside| aside.left.len())
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        // What is aside is never all there is: an end that has left is taken out.
        self.entries.is_empty() && self.aside.is_none()
    }

    #[inline]
    pub fn first(&self) -> Option<(K, V)> {
        let joined = self.aside.as_ref().and_then(|aside| aside.joined.first_key_value());
        let joined = joined.map(|(key, value)| (*key, *value));
        match (self.entries.front().copied(), joined) {
            (Some(a), Some(b)) => Some(if a.0 < b.0 { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    pub fn last_key(&self) -> Option<K> {
        let joined = self.aside.as_ref().and_then(|aside| aside.joined.last_key_value().map(|(key, _)| *key));
        self.entries.back().map(|(key, _)| *key).max(joined)
    }

    fn place_of(&self, key: &K) -> usize {
        self.entries.partition_point(|(other, _)| other < key)
    }

    fn aside_mut(&mut self) -> &mut Aside<K, V> {
        self.aside.get_or_insert_with(|| Box::new(Aside { left: BTreeSet::new(), joined: BTreeMap::new() }))
    }

    #[inline(always)]
    pub fn insert(&mut self, key: K, value: V) {
        match self.entries.back() {
            Some((last, _)) if *last >= key => self.insert_within(key, value),
            _ => self.push_last(key, value),
        }
    }

    /// Adds an entry whose key is greater than all that are there: without a look at them.
    #[inline(always)]
    pub fn push_last(&mut self, key: K, value: V) {
        debug_assert!(self.last_key().is_none_or(|last| last < key));
        if self.entries.capacity() == 0 {
            // Most queues never hold more than one.
            self.entries.reserve_exact(1);
        }
        self.entries.push_back((key, value));
    }

    fn insert_within(&mut self, key: K, value: V) {
        let at = self.place_of(&key);
        if self.entries[at].0 == key {
            // It left, and comes back to where it still stands.
            self.entries[at].1 = value;
            self.aside_mut().left.remove(&key);
        } else if at.min(self.entries.len() - at) <= NEAR {
            self.entries.insert(at, (key, value));
        } else {
            self.aside_mut().joined.insert(key, value);
        }
    }

    #[inline]
    pub fn remove(&mut self, key: &K) -> Option<V> {
        if self.entries.front().is_some_and(|(first, _)| first == key) && self.aside.is_none() {
            return self.entries.pop_front().map(|(_, value)| value);
        }
        if let Some(value) = self.aside.as_mut().and_then(|aside| aside.joined.remove(key)) {
            self.tidy();
            return Some(value);
        }
        let at = self.place_of(key);
        let found = self.entries.get(at).filter(|(other, _)| other == key).map(|(_, value)| *value)?;
        if self.aside.as_ref().is_some_and(|aside| aside.left.contains(key)) {
            return None;
        }
        if at.min(self.entries.len() - 1 - at) <= NEAR {
            self.entries.remove(at);
        } else {
            self.aside_mut().left.insert(*key);
        }
        self.tidy();
        Some(found)
    }

    /// Both ends are entries that are there; what has left is seldom more than half of all.
    fn tidy(&mut self) {
        let Some(aside) = self.aside.as_mut() else { return };
        while self.entries.front().is_some_and(|(first, _)| aside.left.remove(first)) {
            self.entries.pop_front();
        }
        while self.entries.back().is_some_and(|(last, _)| aside.left.remove(last)) {
            self.entries.pop_back();
        }
        if aside.left.len() > NEAR + self.entries.len() / 2 {
            self.entries.retain(|(key, _)| !aside.left.contains(key));
            aside.left.clear();
        }
        if aside.left.is_empty() && aside.joined.is_empty() {
            self.aside = None;
        }
    }

    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        if let Some((first, value)) = self.entries.front()
            && first == key
        {
            return Some(*value);
        }
        let aside = self.aside.as_ref();
        if let Some(value) = aside.and_then(|aside| aside.joined.get(key)) {
            return Some(*value);
        }
        let entry = self.entries.get(self.place_of(key)).filter(|(other, _)| other == key)?;
        aside.is_none_or(|aside| !aside.left.contains(key)).then_some(entry.1)
    }

    /// How many come first for which `is_before` holds, as it does up to some key and for none after; counted up to about `limit`.
    pub fn count_where(&self, is_before: impl Fn(&K) -> bool, limit: usize) -> usize {
        let at = self.entries.partition_point(|(key, _)| is_before(key));
        let Some(aside) = self.aside.as_ref() else { return at };
        let gone = aside.left.iter().take_while(|key| is_before(key)).count();
        at - gone + aside.joined.keys().take_while(|key| is_before(key)).take(limit).count()
    }

    /// The first entry after `key`.
    pub fn next_after(&self, key: &K) -> Option<(K, V)> {
        let from = self.entries.partition_point(|(other, _)| other <= key);
        let Some(aside) = self.aside.as_ref() else { return self.entries.get(from).copied() };
        let there = |entry: &&(K, V)| !aside.left.contains(&entry.0);
        let mine = self.entries.range(from..).find(there).copied();
        let after = (std::ops::Bound::Excluded(*key), std::ops::Bound::Unbounded);
        let joined = aside.joined.range(after).next().map(|(key, value)| (*key, *value));
        match (mine, joined) {
            (Some(a), Some(b)) => Some(if a.0 < b.0 { a } else { b }),
            (a, b) => a.or(b),
        }
    }

    /// The first key for which `is_after` holds, as it does from some key on.
    pub fn first_where(&self, is_after: impl Fn(&K) -> bool) -> Option<K> {
        let from = self.entries.partition_point(|(key, _)| !is_after(key));
        let Some(aside) = self.aside.as_ref() else { return self.entries.get(from).map(|(key, _)| *key) };
        let mine = self.entries.range(from..).map(|(key, _)| *key).find(|key| !aside.left.contains(key));
        let joined = aside.joined.keys().copied().find(|key| is_after(key));
        mine.into_iter().chain(joined).min()
    }

    /// All entries in their order.
    pub fn iter(&self) -> impl Iterator<Item = (K, V)> {
        let left = self.aside.as_ref().map(|aside| &aside.left);
        let there = move |entry: &&(K, V)| left.is_none_or(|left| !left.contains(&entry.0));
        let mut entries = self.entries.iter().filter(there).copied().peekable();
        let joined = self.aside.iter().flat_map(|aside| aside.joined.iter().map(|(key, value)| (*key, *value)));
        let mut joined = joined.peekable();
        std::iter::from_fn(move || match (entries.peek(), joined.peek()) {
            (Some(a), Some(b)) if b.0 < a.0 => joined.next(),
            (Some(_), _) => entries.next(),
            (None, _) => joined.next(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against an ordered map, over a fixed mix of joins and departures near the ends and far from them.
    #[test]
    fn it_does_what_an_ordered_map_does() {
        let (mut queue, mut map) = (SortedQueue::default(), BTreeMap::new());
        let mut state = 1u64;
        for step in 0..20_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = match state >> 60 {
                0..8 => step,
                8..12 => (state >> 20) % (step + 1),
                _ => map.first_key_value().map_or(0, |(key, _)| *key),
            };
            if (state >> 33) % 5 < 2 {
                assert_eq!(queue.remove(&key), map.remove(&key));
            } else if let std::collections::btree_map::Entry::Vacant(there) = map.entry(key) {
                queue.insert(key, step);
                there.insert(step);
            }
            assert_eq!(queue.first(), map.first_key_value().map(|(k, v)| (*k, *v)));
            assert_eq!((queue.last_key(), queue.len()), (map.last_key_value().map(|(k, _)| *k), map.len()));
            let middle = (state >> 13) % (step + 1);
            assert_eq!(queue.count_where(|key| *key < middle, usize::MAX), map.range(..middle).count());
            assert_eq!(queue.next_after(&middle), map.range(middle + 1..).next().map(|(k, v)| (*k, *v)));
        }
        assert!(queue.iter().eq(map.into_iter()));
    }
}
