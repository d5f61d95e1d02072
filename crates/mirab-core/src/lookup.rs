//! Maps for looking things up by key. They are never iterated, so that no order of hashes can reach a decision.
use std::borrow::Borrow;
// The only hash map of the crate: its hasher is fixed and it is never iterated.
#[expect(clippy::disallowed_types, reason = "wrapped here so that it cannot be iterated; the hasher is fixed")]
type Map<K, V, H> = std::collections::HashMap<K, V, std::hash::BuildHasherDefault<H>>;
use std::hash::{Hash, Hasher};

/// A hash map without iteration and with a fixed hasher.
#[derive(Clone, Debug)]
pub(crate) struct Lookup<K, V, H = Mixer>(Map<K, V, H>);

impl<K, V, H> Default for Lookup<K, V, H> {
    fn default() -> Self {
        Self(Map::default())
    }
}

impl<K: Eq + Hash, V, H: Hasher + Default> Lookup<K, V, H> {
    #[inline]
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }

    #[inline]
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }

    #[inline]
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }

    #[inline]
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let gone = self.0.remove(key);
        if self.0.capacity() > 4_096 && self.0.len() < self.0.capacity() / 8 {
            // After a great many things have gone, their memory goes too.
            self.0.shrink_to(self.0.len() * 2);
        }
        gone
    }

    #[inline]
    pub fn contains<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// A multiplicative hasher: fast for small keys, and the same in every process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixer(u64);

impl Hasher for Mixer {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        // Eight at a time; the last eight may overlap those before, which is cheaper than a copy of what is left.
        let mut words = bytes.chunks_exact(8);
        words.by_ref().for_each(|word| self.write_u64(u64::from_le_bytes(word.try_into().expect("eight bytes"))));
        match bytes.last_chunk() {
            Some(last) if !words.remainder().is_empty() => self.write_u64(u64::from_le_bytes(*last)),
            Some(_) => {}
            None => bytes.iter().for_each(|byte| self.write_u8(*byte)),
        }
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        // The golden ratio in 64 bits, as in Fibonacci hashing.
        self.0 = (self.0.rotate_left(26) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// A lookup by numbers that are mostly given one after the other: what is near in number is near in memory.
pub(crate) type NearLookup<K, V> = Lookup<K, V, Near>;

/// A hasher for one number, that keeps neighbours together. Numbers with any power of two between them are spread all the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Near(u64);

impl Hasher for Near {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = self.0.rotate_left(32) ^ value;
    }

    /// The low bits say where to look first; the high ones tell apart what is found there.
    #[inline]
    fn finish(&self) -> u64 {
        let number = self.0;
        let place = number.wrapping_add(number >> 10).wrapping_add(number >> 20).wrapping_add(number >> 40);
        place ^ (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (0x7f << 57))
    }
}
