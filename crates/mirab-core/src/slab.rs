//! Storage by number, with numbers of removed things given again.

/// A vector with holes.
#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    /// Numbers that are free; those beyond the end of `slots` count for nothing.
    holes: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), holes: Vec::new() }
    }
}

impl<T> Slab<T> {
    #[inline]
    pub fn insert(&mut self, value: T) -> u32 {
        while let Some(at) = self.holes.pop() {
            if let Some(slot) = self.slots.get_mut(at as usize)
                && slot.is_none()
            {
                *slot = Some(value);
                return at;
            }
        }
        self.slots.push(Some(value));
        u32::try_from(self.slots.len() - 1).expect("fewer than 2^32 things at once")
    }

    #[inline]
    pub fn remove(&mut self, at: u32) -> Option<T> {
        let value = self.slots.get_mut(at as usize)?.take()?;
        self.holes.push(at);
        self.give_back();
        Some(value)
    }

    /// After a great many things have gone, their memory goes too.
    fn give_back(&mut self) {
        while self.slots.last().is_some_and(Option::is_none) {
            self.slots.pop();
        }
        if self.slots.capacity() > 1_024 && self.slots.len() < self.slots.capacity() / 4 {
            self.slots.shrink_to(self.slots.len() * 2);
            let end = self.slots.len();
            self.holes.retain(|at| (*at as usize) < end);
            self.holes.shrink_to_fit();
        }
    }

    #[inline]
    pub fn get(&self, at: u32) -> Option<&T> {
        self.slots.get(at as usize)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.slots.get_mut(at as usize)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.slots.iter().enumerate().filter_map(|(at, slot)| Some((at as u32, slot.as_ref()?)))
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, at: u32) -> &T {
        self.slots[at as usize].as_ref().expect("a number of something that is there")
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        self.slots[at as usize].as_mut().expect("a number of something that is there")
    }
}
