//! Who waits for one resource, by what they ask for and by rank.
use super::class::{Class, ClassIx};
use super::guard::Guards;
use super::tournament::Tournament;
use crate::api::STARTS_REMEMBERED;
use crate::ids::ClaimId;
use crate::rank::{Head, Rank};
use crate::slab::Slab;
use crate::time::Time;
use std::collections::{BTreeSet, VecDeque};
use std::sync::OnceLock;

/// All classes that ask for the same number of units of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    /// So many.
    pub units: u64,
    /// Every class that asks for so many.
    pub members: BTreeSet<ClassIx>,
    /// So many of them have somebody waiting.
    pub live: usize,
    /// Those that are filed here because they are short of this resource.
    filed: Tournament,
    /// The heads of all that could start as things are, wherever they are filed. Always there where something asks for fewer units than
    /// this shelf: only such claims can take what one of these is short of. For the smallest, while somebody asks for the first of all.
    pub startable: Option<BTreeSet<Head>>,
}

/// A start, for those that it passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Started {
    pub id: ClaimId,
    pub rank: Rank,
    pub fence: u64,
}

/// The line of a resource. It is there while some class asks for the resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// In the order of their units: mostly one, seldom more than a few.
    pub shelves: Vec<Shelf>,
    /// How many classes could start as things are.
    pub startable: usize,
    /// Heads that came since somebody last asked for the first of all.
    unasked: usize,
    /// The best of those that are filed here.
    pub best: Option<Head>,
    /// Its slot among the best of all lines.
    pub slot: Option<u32>,
    /// Waiting claims that were passed: what is free here decides whether they are delayed.
    pub watched: BTreeSet<ClaimId>,
    /// The last starts of this resource, while somebody waited.
    pub starts: VecDeque<Started>,
    /// Classes that fit and are held back on this resource.
    pub held: usize,
    /// When the timer of a bucket is set to fire.
    pub timer: Option<Time>,
    /// The protected waiters, as they were last read.
    pub guards: Guards,
    /// All heads in order, as they were read since the last step.
    pub heads: OnceLock<Vec<Head>>,
}

impl Shelf {
    /// Keeps the heads that could start as things are in order from now on.
    fn keep_order(&mut self, classes: &Slab<Class>) {
        let Self { members, startable, .. } = self;
        startable.get_or_insert_with(|| {
            let startable = members.iter().filter(|at| classes[**at].is_startable());
            startable.map(|at| Head::new(classes[*at].head, *at)).collect()
        });
    }
}

impl Line {
    fn find(&self, units: u64) -> Result<usize, usize> {
        match self.shelves.as_slice() {
            [only] if only.units == units => Ok(0),
            _ => self.shelves.binary_search_by_key(&units, |shelf| shelf.units),
        }
    }

    pub fn shelf_mut(&mut self, units: u64) -> Option<&mut Shelf> {
        self.find(units).ok().map(|at| &mut self.shelves[at])
    }

    /// Adds a class that asks for `units`.
    pub fn add(&mut self, class: ClassIx, units: u64, classes: &Slab<Class>) {
        let at = self.find(units).unwrap_or_else(|at| {
            let (members, filed) = (BTreeSet::new(), Tournament::default());
            self.shelves.insert(at, Shelf { units, members, live: 0, filed, startable: None });
            at
        });
        self.shelves[at].members.insert(class);
        self.shelves.iter_mut().skip(1).for_each(|shelf| shelf.keep_order(classes));
    }

    /// Takes a class out that has nobody waiting.
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

    /// Shelves that somebody waits on.
    pub fn live(&self) -> impl Iterator<Item = &Shelf> {
        self.shelves.iter().filter(|shelf| shelf.live > 0)
    }

    pub fn members(&self) -> impl Iterator<Item = ClassIx> {
        self.shelves.iter().flat_map(|shelf| shelf.members.iter().copied())
    }

    /// False where nobody needs to know the order of those that could start as things are.
    pub fn keeps_order(&self) -> bool {
        self.shelves.len() > 1 || self.shelves.first().is_some_and(|shelf| shelf.startable.is_some())
    }

    /// The head of a class that asks for `units` came, moved or went, of those that could start as things are.
    pub fn move_startable(&mut self, units: u64, from: Option<Head>, to: Option<Head>) {
        let Ok(at) = self.find(units) else { return };
        let Some(startable) = self.shelves[at].startable.as_mut() else { return };
        from.inspect(|from| _ = startable.remove(from));
        startable.extend(to);
        if at == 0 {
            self.unasked += 1;
            if self.unasked > 2 * self.shelves[0].members.len() + 64 {
                self.shelves[0].startable = None;
            }
        }
    }

    /// A class is short of this resource, and filed here. Gives its slot, and whether the best of all is another one now.
    pub fn file(&mut self, units: u64, head: Head) -> (u32, bool) {
        let at = self.find(units).expect("a class stands on a shelf of all that it needs");
        let (slot, is_new) = self.shelves[at].filed.insert(head);
        (slot, is_new && self.find_best(at))
    }

    /// What is filed in a slot has another head; without one, it is filed elsewhere from now on. True when the best of all is another now.
    pub fn refile(&mut self, units: u64, slot: u32, head: Option<Head>) -> bool {
        let Ok(at) = self.find(units) else { return false };
        let filed = &mut self.shelves[at].filed;
        let is_new = match head {
            Some(head) => filed.replace(slot, head),
            None => filed.remove(slot),
        };
        is_new && self.find_best(at)
    }

    /// The best of a shelf is another one now: is it so for the best of all?
    fn find_best(&mut self, at: usize) -> bool {
        let of_shelf = self.shelves[at].filed.best();
        let before = std::mem::replace(&mut self.best, of_shelf);
        if self.shelves.len() > 1 {
            self.best = self.shelves.iter().filter_map(|shelf| shelf.filed.best()).min();
        }
        self.best != before
    }

    /// The first waiter of all that could start as things are.
    pub fn first(&mut self, classes: &Slab<Class>) -> Option<Head> {
        self.unasked = 0;
        self.shelves.first_mut()?.keep_order(classes);
        self.shelves.iter().filter_map(|shelf| shelf.startable.as_ref()?.first().copied()).min()
    }

    /// The best-ranked class that is filed here although so many units are free.
    pub fn candidate(&self, free: u64) -> Option<Head> {
        if let [only] = self.shelves.as_slice() {
            return self.best.filter(|_| only.units <= free);
        }
        let fitting = self.shelves.iter().take_while(|shelf| shelf.units <= free);
        fitting.filter_map(|shelf| shelf.filed.best()).min()
    }

    pub fn remember_start(&mut self, started: Started) {
        if self.starts.len() == STARTS_REMEMBERED {
            self.starts.pop_front();
        }
        self.starts.push_back(started);
    }
}
