//! Who waits for one resource, by what they ask for and by rank.
use super::class::{Class, ClassIx};
use super::guard::Guards;
use super::resource::ResourceIx;
use crate::api::STARTS_REMEMBERED;
use crate::ids::ClaimId;
use crate::rank::Rank;
use crate::slab::Slab;
use crate::time::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::binary_heap::PeekMut;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::sync::OnceLock;

/// All waiting classes that ask for the same number of units of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// So many.
    pub units: u64,
    /// Every class that asks for so many.
    pub members: BTreeSet<ClassIx>,
    /// Those that are filed here because they are short of this resource, in the order of their heads.
    pub filed: BTreeSet<(Rank, ClassIx)>,
    /// The heads of all that could start as things are, wherever they are filed. Kept only where something asks for fewer units than this
    /// shelf: only such claims can take what one of these is short of.
    pub heads: Option<BTreeSet<(Rank, ClassIx)>>,
}

/// A start, for those that it passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub id: ClaimId,
    pub rank: Rank,
    pub fence: u64,
}

/// The line of a resource. It is there while somebody waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// In the order of their units: mostly one, seldom more than a few.
    pub shelves: Vec<Shelf>,
    /// Heads of classes that could start as things are; what has changed since is put right when it comes to the top.
    firsts: BinaryHeap<Reverse<(Rank, ClassIx)>>,
    /// Waiting claims that were passed on some resource and need this one.
    pub passed_over: BTreeSet<ClaimId>,
    /// The last starts of this resource, while somebody waited.
    pub starts: VecDeque<Started>,
    /// Classes that fit and are held back on this resource.
    pub held: usize,
    /// When the timer of a bucket is set to fire.
    pub timer: Option<Time>,
    /// The protected waiters, as they were last read.
    pub guards: Guards,
    /// All heads in order with the lengths of their classes, while somebody asks for them and nothing changes.
    pub heads: OnceLock<Vec<(Rank, ClassIx)>>,
}

impl Line {
    fn find(&self, units: u64) -> Result<usize, usize> {
        self.shelves.binary_search_by_key(&units, |shelf| shelf.units)
    }

    pub fn shelf_mut(&mut self, units: u64) -> Option<&mut Shelf> {
        self.find(units).ok().map(|at| &mut self.shelves[at])
    }

    /// Adds a class that asks for `units`.
    pub fn add(&mut self, class: ClassIx, units: u64, classes: &Slab<Class>) {
        let at = self.find(units).unwrap_or_else(|at| {
            let (members, filed) = (BTreeSet::new(), BTreeSet::new());
            self.shelves.insert(at, Shelf { units, members, filed, heads: None });
            at
        });
        self.shelves[at].members.insert(class);
        // Every shelf above the smallest keeps its heads in order.
        for shelf in self.shelves.iter_mut().skip(1).filter(|shelf| shelf.heads.is_none()) {
            let startable = shelf.members.iter().filter(|class| classes.get(**class).is_some_and(|c| c.startable));
            shelf.heads = Some(startable.map(|class| (classes[*class].head, *class)).collect());
        }
    }

    pub fn remove(&mut self, class: ClassIx, units: u64) {
        let Ok(at) = self.find(units) else { return };
        self.shelves[at].members.remove(&class);
        if self.shelves[at].members.is_empty() {
            self.shelves.remove(at);
        }
    }

    /// Shelves of those that ask for at most `units`, and of those that ask for more.
    pub fn split(&self, units: u64) -> (&[Shelf], &[Shelf]) {
        self.shelves.split_at(self.shelves.partition_point(|shelf| shelf.units <= units))
    }

    pub fn members(&self) -> impl Iterator<Item = ClassIx> {
        self.shelves.iter().flat_map(|shelf| shelf.members.iter().copied())
    }

    /// A head that could start as things are came or moved.
    pub fn note_head(&mut self, head: Rank, class: ClassIx, classes: &Slab<Class>) {
        if self.firsts.len() > 2 * self.shelves.iter().map(|shelf| shelf.members.len()).sum::<usize>() + 16 {
            let startable = self.members().filter_map(|class| Some((classes.get(class)?, class)));
            let startable = startable.filter(|(class, _)| class.startable);
            self.firsts = startable.map(|(class, at)| Reverse((class.head, at))).collect();
        }
        self.firsts.push(Reverse((head, class)));
    }

    /// Puts right what is on top.
    pub fn settle_first(&mut self, classes: &Slab<Class>, here: ResourceIx) {
        while let Some(mut top) = self.firsts.peek_mut() {
            let Reverse((head, class)) = *top;
            match classes.get(class) {
                Some(now) if now.startable && now.key.units(here).is_some() => {
                    match now.head.cmp(&head) {
                        Ordering::Equal => return,
                        Ordering::Greater => top.0.0 = now.head,
                        // What ranks higher than it was has an entry of its own.
                        Ordering::Less => _ = PeekMut::pop(top),
                    }
                }
                _ => _ = PeekMut::pop(top),
            }
        }
    }

    /// The first waiter of all that could start as things are; what is on top must be right.
    pub fn first(&self) -> Option<(Rank, ClassIx)> {
        self.firsts.peek().map(|Reverse(first)| *first)
    }

    /// The best-ranked class that is filed here although so many units are free.
    pub fn candidate(&self, free: u64) -> Option<(Rank, ClassIx)> {
        self.split(free).0.iter().filter_map(|shelf| shelf.filed.first().copied()).min()
    }

    /// All heads in the order of their ranks.
    pub fn heads(&self, classes: &Slab<Class>) -> &[(Rank, ClassIx)] {
        self.heads.get_or_init(|| {
            let mut heads: Vec<_> = self.members().map(|class| (classes[class].head, class)).collect();
            heads.sort_unstable();
            heads
        })
    }

    pub fn remember_start(&mut self, started: Started) {
        if self.starts.len() == STARTS_REMEMBERED {
            self.starts.pop_front();
        }
        self.starts.push_back(started);
    }
}
