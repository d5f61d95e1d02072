//! A map by task, whose ids are given one after the other: found in few steps, kept in order, and gone when nothing is in it.
use super::spec::TaskId;
use std::collections::BTreeMap;

/// Ids that stand together: a power of two.
const PAGE: u64 = 64;

/// Things by task id, in pages of neighbours.
#[derive(Debug)]
pub(super) struct ById<T> {
    pages: BTreeMap<u64, Page<T>>,
}

#[derive(Debug)]
struct Page<T> {
    used: u64,
    slots: Box<[Option<Box<T>>]>,
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self { pages: BTreeMap::new() }
    }
}

fn place(id: TaskId) -> (u64, usize) {
    (id.0 / PAGE, (id.0 % PAGE) as usize)
}

impl<T> ById<T> {
    pub fn get(&self, id: TaskId) -> Option<&T> {
        let (page, slot) = place(id);
        self.pages.get(&page)?.slots[slot].as_deref()
    }

    pub fn get_mut(&mut self, id: TaskId) -> Option<&mut T> {
        let (page, slot) = place(id);
        self.pages.get_mut(&page)?.slots[slot].as_deref_mut()
    }

    pub fn contains(&self, id: TaskId) -> bool {
        self.get(id).is_some()
    }

    /// Puts in what is not there.
    pub fn insert(&mut self, id: TaskId, thing: T) {
        let (page, slot) = place(id);
        let empty = || Page { used: 0, slots: (0..PAGE).map(|_| None).collect() };
        let page = self.pages.entry(page).or_insert_with(empty);
        page.used += u64::from(page.slots[slot].is_none());
        page.slots[slot] = Some(Box::new(thing));
    }

    pub fn remove(&mut self, id: TaskId) -> Option<T> {
        let (number, slot) = place(id);
        let page = self.pages.get_mut(&number)?;
        let gone = page.slots[slot].take()?;
        page.used -= 1;
        if page.used == 0 {
            self.pages.remove(&number);
        }
        Some(*gone)
    }

    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Ids in order.
    pub fn ids(&self) -> impl Iterator<Item = TaskId> {
        self.pages.iter().flat_map(|(number, page)| {
            let used = page.slots.iter().zip(number * PAGE..).filter(|(slot, _)| slot.is_some());
            used.map(|(_, id)| TaskId(id))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_it_is_found_in_order_and_what_is_gone_leaves_no_page() {
        let mut map = ById::default();
        let ids = [5, 63, 64, 65, 1 << 56, (1 << 56) + 1];
        for id in ids.into_iter().rev() {
            map.insert(TaskId(id), id);
        }
        map.insert(TaskId(5), 7);
        assert_eq!(map.ids().map(|id| id.0).collect::<Vec<_>>(), ids);
        assert_eq!((map.get(TaskId(5)), map.get(TaskId(6)), map.contains(TaskId(64))), (Some(&7), None, true));
        *map.get_mut(TaskId(64)).unwrap() = 8;
        assert_eq!((map.remove(TaskId(64)), map.remove(TaskId(64)), map.pages.len()), (Some(8), None, 3));
        ids.into_iter().for_each(|id| _ = map.remove(TaskId(id)));
        assert!(map.is_empty() && map.pages.is_empty());
    }
}
